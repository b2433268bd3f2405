package decide

import (
	"testing"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// encryptedBy returns the encryption of a host that runs with these keys.
func encryptedBy(digest string, keys ...observed.EncryptedBy) *observed.Encryption {
	c := observed.EncryptionConfig{Digest: digest, Providers: keys}
	return &observed.Encryption{Running: []observed.EncryptionConfig{c}, Next: c}
}

// encryptedWorld returns a healthy cluster of three control-plane hosts with that encryption.
func encryptedWorld(by func(i int) *observed.Encryption) Input {
	cps, workers := hostKinds(), workerKinds()
	at := 0
	for i, k := range cps {
		if k.name == "healthy" {
			at = i
		}
	}
	in := combination{cps: []int{at, at, at}, api: true, members: true}.buildWorld(decidetest.Wanted(3, 0), cps,
		workers)
	for i, h := range in.Want.ControlPlane {
		is := in.Is.Hosts[h.ID]
		is.Encryption = by(i)
		in.Is.Hosts[h.ID] = is
	}
	return in
}

func TestSecretsAreStoredAsTheManifestWants(t *testing.T) {
	t.Parallel()
	k1, other := observed.EncryptedBy{Name: "kubeone-1", Key: "a"}, observed.EncryptedBy{Name: "kubeone-1", Key: "b"}
	none := func(int) *observed.Encryption { return nil }
	all := func(int) *observed.Encryption { return encryptedBy("d", k1) }
	in := encryptedWorld(none)
	if d := Decide(in); d.Encryption != nil || d.Route == fsm.Encrypt {
		t.Fatalf("%s: %+v", d.Route, d.Encryption)
	}
	in.Want.EncryptSecrets = true
	if d := Decide(in); d.Route != fsm.Encrypt || d.Encryption.Phase != atrest.Learn || len(d.Encryption.Hosts) != 3 {
		t.Errorf("%s: %+v", d.Route, d.Encryption)
	}
	in.Limit = map[string]bool{in.Want.ControlPlane[0].ID: true}
	if d := Decide(in); d.Route == fsm.Encrypt {
		t.Errorf("some hosts must not be touched, and %+v", d.Encryption)
	}
	in = encryptedWorld(all)
	if d := Decide(in); d.Route != fsm.Encrypt || d.Encryption.Writer != observed.Identity {
		t.Errorf("disabled: %s: %+v", d.Route, d.Encryption)
	}
	in.Want.EncryptSecrets = true
	if d := Decide(in); d.Route == fsm.Encrypt {
		t.Errorf("%+v", d.Encryption)
	}
	in.RotateKey = true
	if d := Decide(in); d.Route != fsm.Encrypt || d.Encryption.Writer != "kubeone-2" || !d.Encryption.New {
		t.Errorf("%s: %+v", d.Route, d.Encryption)
	}
	in = encryptedWorld(func(i int) *observed.Encryption {
		if i == 2 {
			return encryptedBy("e", other)
		}
		return encryptedBy("d", k1)
	})
	if d := Decide(in); d.Route != fsm.Error || !problem.Has(d.Problems, problem.EncryptionKeysDiffer) {
		t.Errorf("%s: %v", d.Route, d.Problems)
	}
}

// A control-plane host outside the manifest would not get the keys: the change waits for it, with a warning.
func TestNoKeyIsUsedThatAServerElsewhereLacks(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(*Input){
		"a member of etcd": func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{
				ID: "99", Name: "cp-9", PeerURLs: []string{"https://192.0.2.9:2380"}, Healthy: observed.Yes,
			})
		},
		"a Node": func(in *Input) {
			in.Is.API.Nodes = append(in.Is.API.Nodes, observed.Node{
				Name: "cp-9", ControlPlane: true, Ready: observed.Yes, KubeletVersion: in.Want.KubernetesVersion,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			add(&in)
			if d := Decide(in); problem.Has(d.Warnings, problem.EncryptionWaits) {
				t.Errorf("nothing is wanted, and it says %v", d.Warnings)
			}
			in.Want.EncryptSecrets = true
			if d := Decide(in); d.Route == fsm.Encrypt || !problem.Has(d.Warnings, problem.EncryptionWaits) {
				t.Errorf("%s: %+v, %v", d.Route, d.Encryption, d.Warnings)
			}
		})
	}
}

func TestAForeignConfigurationIsLeftAlone(t *testing.T) {
	t.Parallel()
	in := encryptedWorld(func(int) *observed.Encryption {
		return &observed.Encryption{Foreign: "/etc/kubernetes/pki/e.yaml"}
	})
	if d := Decide(in); d.Route == fsm.Encrypt || d.Route == fsm.Error {
		t.Errorf("%s: %v", d.Route, d.Problems)
	}
	in.Want.EncryptSecrets = true
	if d := Decide(in); d.Route != fsm.Error || !problem.Has(d.Problems, problem.EncryptionForeign) {
		t.Errorf("%s: %v", d.Route, d.Problems)
	}
}

func TestAHostThatLostItsKeysGetsThemFromAnother(t *testing.T) {
	t.Parallel()
	k1 := observed.EncryptedBy{Name: "kubeone-1", Key: "a"}
	lost := func(hosts int) Input {
		in := encryptedWorld(func(i int) *observed.Encryption {
			e := encryptedBy("d", k1)
			if i < hosts {
				e.Lost, e.Next.Providers = true, nil
			}
			return e
		})
		in.Want.EncryptSecrets = true
		return in
	}
	in := lost(1)
	if d := Decide(in); d.Route != fsm.Repair || len(d.Regenerations[in.Want.ControlPlane[0].ID]) != 1 {
		t.Errorf("%s: %v", d.Route, d.Regenerations)
	}
	in = lost(3)
	d := Decide(in)
	reasons := d.Hosts[in.Want.ControlPlane[0].ID].Reasons
	if d.Route != fsm.Instruct || !problem.Has(reasons, problem.EncryptionKeysMissing) {
		t.Errorf("%s: %v", d.Route, d.Hosts)
	}
}
