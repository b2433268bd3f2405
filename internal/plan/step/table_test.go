package step

import (
	"regexp"
	"slices"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[Kind]bool{}
	for _, r := range rows {
		switch {
		case r.kind == "" || seen[r.kind]:
			t.Errorf("%q is there twice, or has no name", r.kind)
		case !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(string(r.kind)):
			t.Errorf("%q cannot be the name of a stage", r.kind)
		case r.about == "", r.group == "", r.effect == nil:
			t.Errorf("%s lacks what it is about, its group or its effect", r.kind)
		case r.place != OnHost && r.place != ThroughAPI && r.place != ThroughEtcd && r.place != OnOperator:
			t.Errorf("%s runs nowhere", r.kind)
		case r.place != OnHost && (len(r.secrets) > 0 || r.kind.Installs()):
			t.Errorf("%s goes %s, and has no host to bring anything to", r.kind, r.place)
		case r.params.zero != nil && r.params.zero.Kind() != r.kind:
			t.Errorf("%s has the parameters of %s", r.kind, r.params.zero.Kind())
		}
		seen[r.kind] = true
	}
}

// Parameters of the same name in JSON would make one of them unreadable.
func TestNoParameterHidesACommonField(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		in := Intent{Kind: k, Role: "r", NodeName: "n", Version: "v", Arch: "a", Digest: "d", Params: k.Params()}
		text, err := in.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range common {
			if n := len(regexp.MustCompile(`"`+name+`":`).FindAll(text, -1)); n != 1 {
				t.Errorf("%s: %s is there %d times in %s", k, name, n, text)
			}
		}
	}
}

func TestWhatIsKnownOfAnUnknownKind(t *testing.T) {
	t.Parallel()
	i := Intent{Kind: "odd"}
	w := NewWorld(decide.Input{}, nil, 0)
	w.Predict(desired.Host{}, i)
	if i.Kind.OnHost() || i.Kind.Event() != "" || i.Disrupts() != quorum.NoDisruption || i.Secrets() != nil ||
		i.HaltsUpgrade() {
		t.Errorf("%+v", i)
	}
}

func TestSecretsAreThoseOfTheRole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		intent Intent
		token  bool
		want   []Secret
	}{
		{Intent{Kind: Init, Role: desired.ControlPlane}, true,
			[]Secret{NewTokenSecret, EncryptionSecret, ComponentSecret}},
		{Intent{Kind: JoinWorker, Role: desired.Worker}, true, []Secret{TokenSecret, DiscoverySecret}},
		{Intent{Kind: Regenerate, Role: desired.Worker}, true, []Secret{TokenSecret, DiscoverySecret}},
		{Intent{Kind: Regenerate, Role: desired.ControlPlane}, false, []Secret{ComponentSecret}},
		{Intent{Kind: Reconfigure, Role: desired.Worker}, false, []Secret{CredentialsSecret}},
		{Intent{Kind: CopyPKI, Role: desired.ControlPlane}, false, []Secret{PKISecret, EncryptionSecret}},
		{Intent{Kind: Images, Role: desired.Worker}, false, nil},
	} {
		if got := c.intent.Secrets(); !slices.Equal(got, c.want) || c.intent.NeedsToken() != c.token {
			t.Errorf("%s on a %s reads %v, a token: %t", c.intent.Kind, c.intent.Role, got, c.intent.NeedsToken())
		}
	}
}

// TestEveryKindSaysWhatItDisrupts lists all kinds, so that it fails for a new one until its effect on etcd is stated.
func TestEveryKindSaysWhatItDisrupts(t *testing.T) {
	t.Parallel()
	want := map[Kind]quorum.Disruption{
		UpgradeControlPlane: quorum.Stop, UpgradeWorker: quorum.Stop, Reconfigure: quorum.Stop,
		EncryptLearn: quorum.Stop, EncryptUse: quorum.Stop, EncryptForget: quorum.Stop, EncryptGive: quorum.Stop,
		Quarantine: quorum.StopHealthy, RemoveEtcd: quorum.Leave,
	}
	for _, none := range []Kind{
		Prepare, Images, ControllerFiles, Init, CopyPKI, JoinPrepare, JoinEtcd, JoinFinish, JoinWorker,
		RestartUnits, Regenerate, RestoreFiles, APINames, Dial, PublishEndpoint, Fetch, Check, SystemAddons, Snapshot,
		RewriteSecrets, CheckSecrets,
		RotateLearn, RotateUse, RotateForget, RenewTokens, RenewTokenSecrets, TrimFrontProxyCA, TrimClientCA,
		PublishCA, LearnCA, PodsTrustCA, ForgetCA,
		Fence, Restore, // these are for an etcd without a quorum, which plan.Recover makes sure of
		ResetHost, Purge, // of a whole cluster, which ends
		RemoveAutoApproval, RevokeTokens, NodeReady, ApplyAddon, RemoveAddon, ApplyRelease, RemoveRelease, CreateMachines,
		UpgradeMachines,
		SetSystem, RemoveKubeProxy, ApproveServing, AwaitWorkloads, SaveRecord,
		DrainNode, Uncordon, DeleteNode, DeleteMachines, AwaitHosts, Hooks, OperatorHooks,
	} {
		want[none] = quorum.NoDisruption
	}
	for _, k := range Kinds() {
		d, listed := want[k]
		if got := (Intent{Kind: k}).Disrupts(); !listed || got != d {
			t.Errorf("%s: %q, want %q, listed: %t", k, got, d, listed)
		}
	}
	for _, c := range []struct {
		intent Intent
		want   quorum.Disruption
	}{
		{With(DrainNodeParams{Upgrade: true}), quorum.Stop},
		{With(RegenerateParams{Parts: []string{condition.PartCertificates}}), quorum.StopHealthy},
		{With(RegenerateParams{Parts: []string{"kube-apiserver"}}), quorum.NoDisruption},
		{With(RestoreFilesParams{Files: []string{"/var/lib/kubelet/config.yaml"}}), quorum.StopHealthy},
		{With(RestoreFilesParams{Files: []string{"/etc/systemd/system/containerd.service"}}), quorum.StopHealthy},
		{With(RestoreFilesParams{Files: []string{"/etc/containerd/certs.d/docker.io/hosts.toml"}}),
			quorum.NoDisruption},
		{With(RotateParams{Phase: rotation.Use, Authorities: []string{observed.EtcdCA}}), quorum.Stop},
		{With(RotateParams{Phase: rotation.Use, Authorities: []string{observed.FrontProxyCA}}), quorum.NoDisruption},
		{With(ResetHostParams{MemberLeft: true}), quorum.Wipe},
		{With(PurgeParams{Quorum: true}), quorum.Purge},
	} {
		if got := c.intent.Disrupts(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.intent, got, c.want)
		}
	}
}

// A prediction changes nothing of the world that it began with.
func TestPredictionsLeaveTheirInputAsItIs(t *testing.T) {
	t.Parallel()
	h := desired.Host{ID: "1", Role: desired.ControlPlane, PrivateAddress: "10.0.0.1"}
	for _, k := range Kinds() {
		in := decide.Input{
			Want: desired.Cluster{Name: "c", ControlPlane: []desired.Host{h}, KubernetesVersion: "1.2.3"},
		}
		in.Is.Hosts = map[string]observed.Host{"1": {ID: "1"}}
		in.Is.API.Nodes = []observed.Node{{Name: "n", Annotations: map[string]string{observed.CordonAnnotation: "run"}}}
		in.Is.API.Pods = []observed.Pod{{App: "kube-proxy", Image: "old"}}
		in.Is.Etcd.Members = []observed.Member{{ID: "a", Name: "n"}}
		in.Is.API.Pool = &observed.Pool{
			Machines: []observed.Machine{{Name: "m"}}, Hosts: []observed.PoolHost{{Name: "n", Machine: "/m"}},
		}
		in.System = map[string]string{"kube-proxy": "new"}
		w := NewWorld(in, map[string]string{"1": "n"}, 0)
		w.Predict(h, Intent{Kind: k, NodeName: "n", Params: k.Params()})
		_, marked := in.Is.API.Nodes[0].Annotations[observed.CordonAnnotation]
		if in.Is.Hosts["1"].Marker != nil || !marked || in.Is.API.Pods[0].Image != "old" ||
			in.Is.Etcd.Members[0].Healthy != "" || len(in.Is.API.Pool.Machines) != 1 ||
			in.Is.API.Pool.Hosts[0].Machine != "/m" || in.Is.API.Nodes[0].Name != "n" {
			t.Errorf("%s changed its input", k)
		}
	}
}
