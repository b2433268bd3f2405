//go:build e2e

package machines

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/controllers"
	lifeof "kubeone/internal/machines/machine"
	provide "kubeone/internal/machines/provider/ssh"
	"kubeone/internal/testutil/sshtest"
	"kubeone/internal/workspace"
)

// network is the network behind a bastion, by address and port. Hosts of the pool have no loopback addresses.
type network struct {
	mu  sync.Mutex
	has map[string]*sshtest.Server
}

func (n *network) putServer(at string, s *sshtest.Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.has = map[string]*sshtest.Server{at: s}
}

func (n *network) dialServer(ctx context.Context, _, at string) (net.Conn, error) {
	n.mu.Lock()
	s := n.has[at]
	n.mu.Unlock()
	if s == nil {
		return nil, syscall.ECONNREFUSED
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
}

// bareHandler answers like a host without any installation, and does nothing.
func bareHandler(answer string) sshtest.Handler {
	return func(s *sshtest.Session) int {
		_, size, _ := strings.Cut(s.Command, "dd bs=")
		size, _, _ = strings.Cut(size, " ")
		length, err := strconv.Atoi(size)
		if err != nil {
			return 1
		}
		if _, err := io.CopyN(io.Discard, s.Stdin, int64(length)); err != nil ||
			!strings.Contains(s.Command+" ", " kubeone facts ") {
			return 1
		}
		now := fmt.Sprintf("clock\t%d.", time.Now().Unix())
		_, _ = io.WriteString(s.Stdout, strings.ReplaceAll(answer, "clock\t1800000000.", now))
		return 0
	}
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pinnedKeys(s *sshtest.Server) []string {
	return []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.HostKey())))}
}

// guarded is a pool of one Host behind a bastion, with controllers.
type guarded struct {
	client.Client
	t *testing.T
	network
	answers sshtest.Handler
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	config, access, admin := startAPI(t)
	writeRecord(t, admin)
	releases := workspace.NewReleaseOpener(workspace.Options{BundleDir: t.TempDir()})
	t.Cleanup(releases.Close)
	runWith(t, access, "controller/one", releases.From)
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := os.ReadFile("../../internal/probe/testdata/empty.txt")
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, answers: bareHandler(strings.ReplaceAll(string(answer), "10.0.0.11", "192.0.2.9"))}
	if g.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guarded) startServer(key ssh.Signer, authorized ...ssh.PublicKey) *sshtest.Server {
	return sshtest.Start(g.t, sshtest.Options{
		HostKeys: []ssh.Signer{key}, AuthorizedKeys: authorized, Handler: g.answers,
	})
}

// createObject creates an object as soon as its kind is defined.
func (g *guarded) createObject(o client.Object) {
	g.t.Helper()
	awaitTrue(g.t, "create "+o.GetName(), func() bool { return g.Create(g.t.Context(), o) == nil })
}

// createMachine creates a Machine that accepts only that Host.
func (g *guarded) createMachine(name, host string) *v1alpha1.Machine {
	g.t.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.ProviderSpec.Value.CloudProvider = provide.Name
	m.Spec.ProviderSpec.Value.CloudProviderSpec = &runtime.RawExtension{Raw: []byte(`{"host": "` + host + `"}`)}
	m.Spec.Versions.Kubelet = "1.36.3"
	g.createObject(m)
	return m
}

// awaitCondition waits until a condition of the Machine is false for the reason and contains the text.
func (g *guarded) awaitCondition(what string, m *v1alpha1.Machine, condition, reason, text string) {
	g.t.Helper()
	var last *metav1.Condition
	defer func() {
		if g.t.Failed() {
			g.t.Logf("%s: %s says %+v", what, m.Name, last)
		}
	}()
	awaitTrue(g.t, what, func() bool {
		is := &v1alpha1.Machine{}
		if err := g.Get(g.t.Context(), client.ObjectKeyFromObject(m), is); err != nil {
			return false
		}
		last = meta.FindStatusCondition(is.Status.Conditions, condition)
		return last != nil && last.Status == metav1.ConditionFalse && last.Reason == reason &&
			strings.Contains(last.Message, text)
	})
}

func (g *guarded) readHost() *kubeone.Host {
	g.t.Helper()
	h := &kubeone.Host{}
	if err := g.Get(g.t.Context(), client.ObjectKey{Name: "w-1"}, h); err != nil {
		g.t.Fatal(err)
	}
	return h
}

// editHost changes the Host like an operator.
func (g *guarded) editHost(change func(*kubeone.HostSpec)) {
	g.t.Helper()
	before := g.readHost()
	after := before.DeepCopy()
	change(&after.Spec)
	if err := g.Patch(g.t.Context(), after, client.MergeFrom(before)); err != nil {
		g.t.Fatal(err)
	}
}

// TestHostRefusesLogin has one Host that two Machines name. While the first Machine has it, the Host gets another
// key, refuses the login, and moves. The Machine's status reports each problem, and the work resumes once the Host or
// its machine is corrected. The second Machine's status names the owner of the Host. It gets the Host when the first
// Machine is deleted.
func TestHostRefusesLogin(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	bastion := sshtest.Start(t, sshtest.Options{Dial: g.dialServer})
	first, anew := g.startServer(newKey(t)), newKey(t)
	after, closed := g.startServer(anew), g.startServer(anew, newKey(t).PublicKey())
	g.putServer("192.0.2.9:22", first)
	g.createObject(&kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Spec: kubeone.HostSpec{
		Address: "192.0.2.9", PrivateAddress: "192.0.2.9", HostKeys: pinnedKeys(first),
		Bastion: &kubeone.Bastion{Address: "127.0.0.1", Port: int32(bastion.Port()), HostKeys: pinnedKeys(bastion)},
	}})
	one := g.createMachine("one", "w-1")
	// The host has answered and is suitable. This cluster has no control plane, so this is the furthest state.
	const goesOn = "no API server reported its version"
	g.awaitCondition("the host answers", one, lifeof.ConditionReady, "Waiting", goesOn)
	two := g.createMachine("two", "w-1")
	g.awaitCondition("another has it", two, lifeof.ConditionAllocated, "HostTaken",
		"the Machine requires Host w-1, which belongs to Machine "+namespace+"/one")

	g.putServer("192.0.2.9:22", after)
	g.awaitCondition("it has another key", one, lifeof.ConditionReady, "HostSilent",
		"the host key of 192.0.2.9:22 has changed")
	g.editHost(func(h *kubeone.HostSpec) { h.HostKeys = pinnedKeys(after) })
	g.awaitCondition("its key is known", one, lifeof.ConditionReady, "Waiting", goesOn)

	g.putServer("192.0.2.9:22", closed)
	g.awaitCondition("the login is refused", one, lifeof.ConditionReady, "HostSilent", "authorized_keys")
	g.putServer("192.0.2.9:22", after)
	g.awaitCondition("it lets the cluster in", one, lifeof.ConditionReady, "Waiting", goesOn)

	g.putServer("192.0.2.10:2222", after)
	g.awaitCondition("it is elsewhere", one, lifeof.ConditionReady, "HostSilent", "192.0.2.9")
	g.editHost(func(h *kubeone.HostSpec) { h.Address, h.Port = "192.0.2.10", 2222 })
	g.awaitCondition("it is found there", one, lifeof.ConditionReady, "Waiting", goesOn)

	if h := g.readHost(); h.Status.Claim == nil || h.Status.Claim.UID != one.UID {
		t.Errorf("meanwhile it became %+v", h.Status)
	}
	if err := g.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	g.awaitCondition("the second one has it", two, lifeof.ConditionReady, "Waiting", goesOn)
	if h := g.readHost(); h.Status.Claim == nil || h.Status.Claim.UID != two.UID || h.Status.Message != "" {
		t.Errorf("it is %+v", h.Status)
	}
}
