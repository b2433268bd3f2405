package pool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	provider "kubeone/internal/machines/provider/ssh"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/closedport"
	"kubeone/internal/testutil/clustertest"
	"kubeone/internal/testutil/sshtest"
)

func TestTheKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	api := clustertest.API()
	first, err := Key(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Key(t.Context(), api)
	if err != nil || ssh.FingerprintSHA256(again.PublicKey()) != ssh.FingerprintSHA256(first.PublicKey()) {
		t.Errorf("asked again: another key, or %v", err)
	}
	secret, err := api.CoreV1().Secrets(Namespace).Get(t.Context(), KeySecret, metav1.GetOptions{})
	if err != nil || secret.Type != corev1.SecretTypeSSHAuth || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret: %v", err)
	}
	broken := clustertest.API(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: KeySecret},
		Data:       map[string][]byte{corev1.SSHAuthPrivateKey: []byte("-----BEGIN hunter2")},
	})
	_, err = Key(t.Context(), broken)
	if says := fmt.Sprint(err); !strings.Contains(says, "kubeone-system/ssh-key") || strings.Contains(says, "hunter2") {
		t.Errorf("a Secret that has no key: %v", err)
	}
}

// machine is a fake machine. The home of its root is a directory of the test.
type machine struct {
	*sshtest.Server
	home string
}

func newMachine(t *testing.T, let ...ssh.PublicKey) machine {
	t.Helper()
	m := machine{home: t.TempDir()}
	shims := t.TempDir()
	public := filepath.Join(shims, "key.pub")
	for name, text := range map[string]string{
		"id": "echo root", "sshd": "echo hostkey " + strings.TrimSuffix(public, ".pub"),
	} {
		if err := os.WriteFile(filepath.Join(shims, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.Server = sshtest.Start(t, sshtest.Options{
		AuthorizedKeys: let, Handler: sshtest.Shell("HOME="+m.home, "PATH="+shims+":"+os.Getenv("PATH")),
	})
	if err := os.WriteFile(public, ssh.MarshalAuthorizedKey(m.HostKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m machine) keys(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.home, ".ssh", "authorized_keys"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func (m machine) as(name string) Machine {
	return Machine{
		At: host.Target{Address: "127.0.0.1", Port: m.Port(), User: "root", Name: name}, PrivateAddress: "192.0.2.7",
	}
}

// newAdder returns an Adder for an operator with a key file and a cluster with the objects.
func newAdder(t *testing.T, objects ...client.Object) (*Adder, sshtest.Key) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubeone.AddToScheme, v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	operator := sshtest.WriteKey(t, "")
	key, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	a := &Adder{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Key: key,
		SSH: sshpool.New(sshpool.Options{
			IgnoreSSHConfig: true, KnownHostsFiles: []string{}, KnownHosts: host.PolicyProbe, HomeDir: t.TempDir(),
			Getenv: func(string) string { return "" }, Signers: []ssh.Signer{operator.Signer},
		}),
	}
	t.Cleanup(func() { _ = a.SSH.Close() })
	return a, operator
}

func TestAMachineIsAddedAndRemoved(t *testing.T) {
	t.Parallel()
	a, operator := newAdder(t)
	m := newMachine(t, operator.Public(), a.Key.PublicKey())
	to := m.as("worker-7")
	to.FailureDomain, to.Labels = "rack-1", map[string]string{"pool": "a"}
	c, err := a.Inspect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Contacts) != 1 || c.Known || m.keys(t) != "" {
		t.Fatalf("looked at: %d first contacts, known %t, keys %q", len(c.Contacts), c.Known, m.keys(t))
	}
	if err := os.Mkdir(filepath.Join(m.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	const mine = "ssh-ed25519 AAAAmine of a person, cut short"
	if err := os.WriteFile(filepath.Join(m.home, ".ssh", "authorized_keys"), []byte(mine), 0o640); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Add(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if c, err = a.Inspect(t.Context(), to); err != nil || !c.Known {
			t.Fatalf("it is not known: %v", err)
		}
	}
	if lines := strings.Split(m.keys(t), "\n"); len(lines) != 3 || lines[0] != mine ||
		!strings.HasPrefix(lines[1], "restrict ssh-ed25519 ") || !strings.HasSuffix(lines[1], " kubeone-pool") {
		t.Errorf("authorized_keys: %q", lines)
	}
	h := &kubeone.Host{}
	if err := a.Client.Get(t.Context(), client.ObjectKey{Name: "worker-7"}, h); err != nil {
		t.Fatal(err)
	}
	if h.Spec.FailureDomain != "rack-1" || h.Labels["pool"] != "a" || h.Spec.Address != "127.0.0.1" ||
		h.Spec.PrivateAddress != "192.0.2.7" ||
		int(h.Spec.Port) != m.Port() || len(h.Spec.HostKeys) == 0 {
		t.Errorf("the Host is %+v", h)
	}
	to.PrivateAddress = "192.0.2.8"
	if _, err := a.Inspect(t.Context(), to); err == nil || !strings.Contains(err.Error(), "192.0.2.7") {
		t.Errorf("with another private address: %v", err)
	}
	other := newMachine(t, operator.Public())
	_, err = a.Inspect(t.Context(), other.as("worker-7"))
	if err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("another machine of that name: %v", err)
	}
	if unreached, err := a.Remove(t.Context(), "worker-7", false); unreached != nil || err != nil {
		t.Fatalf("removed: %v, %v", unreached, err)
	}
	if m.keys(t) != mine+"\n" {
		t.Errorf("authorized_keys: %q", m.keys(t))
	}
	info, err := os.Stat(filepath.Join(m.home, ".ssh", "authorized_keys"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode of authorized_keys: %v, %v", info.Mode(), err)
	}
	_, err = a.Remove(t.Context(), "worker-7", false)
	if err == nil || !strings.Contains(err.Error(), "there is no Host") {
		t.Errorf("removed twice: %v", err)
	}
}

// If two operators add a host at the same time, the second one does not revoke the key of the first one's Host.
func TestTwoWhoAddOneHost(t *testing.T) {
	t.Parallel()
	a, operator := newAdder(t)
	m := newMachine(t, operator.Public(), a.Key.PublicKey())
	var both []Candidate
	for range 2 {
		c, err := a.Inspect(t.Context(), m.as("worker-7"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	for _, c := range both {
		if err := a.Add(t.Context(), c); err != nil {
			t.Errorf("%v", err)
		}
	}
	if !strings.Contains(m.keys(t), encodeKey(a.Key.PublicKey())) {
		t.Errorf("the Host is there, and its machine does not let the cluster in: %q", m.keys(t))
	}
}

// No two Hosts have the same Node address, whether they exist or are added together.
func TestNoTwoHostsHaveOneAddress(t *testing.T) {
	t.Parallel()
	a, operator := newAdder(t, &kubeone.Host{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-6"}, Spec: kubeone.HostSpec{Address: "2001:db8::6"},
	})
	m := newMachine(t, operator.Public(), a.Key.PublicKey()).as("worker-7")
	m.PrivateAddress = "2001:db8:0::6"
	if _, err := a.Inspect(t.Context(), m); err == nil || !strings.Contains(err.Error(), "as Host worker-6") {
		t.Errorf("it would pose as another Host: %v", err)
	}
	m.PrivateAddress = "192.0.2.7"
	c, err := a.Inspect(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"worker-7": "have the same hostname",
		"worker-8": "as Host worker-7"} {
		other := newMachine(t, operator.Public(), a.Key.PublicKey()).as(name)
		if _, err := a.Inspect(t.Context(), other, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s beside worker-7, at the same time: %v, want %q", name, err, want)
		}
	}
}

// A replaced key is authorized in addition to the old one, which controllers use until they restart.
func TestAReplacedKeyIsLetInBelowTheOld(t *testing.T) {
	t.Parallel()
	a, operator := newAdder(t)
	later, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, operator.Public(), a.Key.PublicKey(), later.PublicKey())
	var want []string
	for _, key := range []ssh.Signer{a.Key, later, later} {
		a.Key = key
		c, err := a.Inspect(t.Context(), m.as("worker-7"))
		if err == nil {
			err = a.Add(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
		want = append(want, "restrict "+line+" kubeone-pool")
	}
	if got := strings.Split(strings.TrimSpace(m.keys(t)), "\n"); !slices.Equal(got, want[:2]) {
		t.Errorf("authorized_keys: %q", got)
	}
}

// The Node of a machine reached by DNS name or behind NAT gets one of the machine's own addresses.
func TestPrivateAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, says, own, want, wrong string }{
		{at: "192.0.2.7", own: "10.0.0.7 192.0.2.7"},
		{at: "192.0.2.7", own: "10.0.0.7", want: "10.0.0.7"},
		{at: "worker.example.com", own: "10.0.0.7", want: "10.0.0.7"},
		{at: "worker.example.com", own: "10.0.0.7 10.1.0.7", wrong: "10.0.0.7, 10.1.0.7"},
		{at: "worker.example.com", wrong: "does not report"},
		{at: "worker.example.com", says: "10.1.0.7", own: "10.0.0.7 10.1.0.7", want: "10.1.0.7"},
	} {
		got, err := choosePrivateAddress(Machine{At: host.Target{Address: c.at}, PrivateAddress: c.says},
			observed.Host{Addresses: strings.Fields(c.own)})
		if got != c.want || (err != nil) != (c.wrong != "") ||
			c.wrong != "" && !strings.Contains(fmt.Sprint(err), c.wrong) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// A machine that refuses the cluster's key gets no Host, and a machine in use is refused.
func TestNoHostWithoutALogin(t *testing.T) {
	t.Parallel()
	a, operator := newAdder(t)
	m := newMachine(t, operator.Public()) // its SSH server ignores authorized_keys
	c, err := a.Inspect(t.Context(), m.as("worker-7"))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Add(t.Context(), c); host.ClassOf(err) != host.Auth {
		t.Errorf("the cluster is not let in: %v", err)
	}
	if all, err := List(t.Context(), a.Client); err != nil || len(all) != 0 || m.keys(t) != "" {
		t.Errorf("%d Hosts, %v, and the host lets in %q", len(all), err, m.keys(t))
	}
	free := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	for name, is := range map[string]observed.Host{
		"of the cluster prod":         {Marker: &observed.Marker{Cluster: "prod"}},
		"belongs to Machine ns/m in":  {Marker: &observed.Marker{Cluster: "prod", Machine: "ns/m"}},
		"that kubeone did not create": {KubeletConf: observed.Yes},
		"must be empty":               {EtcdData: observed.Yes},
	} {
		if err := checkUnoccupied(free, is); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkUnoccupied(free, observed.Host{}); err != nil {
		t.Errorf("an empty host: %v", err)
	}
	used := &kubeone.Host{Status: kubeone.HostStatus{Claim: &kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "u"}}}
	its := observed.Host{Marker: &observed.Marker{Machine: "ns/m", ID: "u"}, KubeletConf: observed.Yes}
	if err := checkUnoccupied(used, its); err != nil {
		t.Errorf("its own Machine's: %v", err)
	}
	its.Marker.ID = "another"
	if err := checkUnoccupied(used, its); err == nil {
		t.Error("another Machine's is let in")
	}
}

// An unreachable Host stays, so that its key can be revoked later. With force it is removed, and the key stays.
func TestRemovingAHostThatIsUsedOrSilent(t *testing.T) {
	t.Parallel()
	key, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	port := int32(closedport.New(t))
	of := func(name, address string, claim *kubeone.HostClaim) *kubeone.Host {
		return &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{provider.HostFinalizer}},
			Spec: kubeone.HostSpec{
				Address: address, Port: port, User: "root",
				HostKeys: []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))},
			},
			Status: kubeone.HostStatus{Claim: claim},
		}
	}
	its := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}}
	a, _ := newAdder(t, its, of("used", "127.0.0.2", &kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "u"}),
		of("left", "127.0.0.3", &kubeone.HostClaim{Namespace: "ns", Name: "gone", UID: "v"}),
		of("silent", "127.0.0.1", nil))
	_, err = a.Remove(t.Context(), "left", false)
	if err == nil || !strings.Contains(err.Error(), "remove it with --force") {
		t.Errorf("of a Machine that is gone: %v", err)
	}
	if _, err := a.Remove(t.Context(), "left", true); err != nil {
		t.Errorf("of a Machine that is gone, by force: %v", err)
	}
	if _, err := a.Remove(t.Context(), "used", true); err == nil ||
		!strings.Contains(err.Error(), "to return it, run kubectl -n ns delete machine m") {
		t.Errorf("used: %v", err)
	}
	exists := func() bool {
		return a.Client.Get(context.Background(), client.ObjectKey{Name: "silent"}, &kubeone.Host{}) == nil
	}
	if _, err := a.Remove(t.Context(), "silent", false); host.ClassOf(err) != host.Unreachable || !exists() {
		t.Errorf("silent: %v, and it is there: %t", err, exists())
	}
	var unreached error
	unreached, err = a.Remove(t.Context(), "silent", true)
	if unreached == nil || err != nil || exists() {
		t.Errorf("by force: %v, %v, and it is there: %t", unreached, err, exists())
	}
}
