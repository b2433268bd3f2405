package ssh

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/cluster/record"
	"kubeone/internal/testutil/clustertest"
	"kubeone/internal/testutil/machinetest"
)

// theManifest has none of the pool's hosts.
const theManifest = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: test
versions: {kubernetes: 1.36.3}
cloudProvider: {none: {}}
controlPlane: {hosts: [{publicAddress: 192.0.2.1, hostname: cp-1}]}
apiEndpoint: {host: 192.0.2.1}
`

// recordOf returns access to an API that has only the cluster record, and optionally credentials of hosts.
func recordOf(t *testing.T, credentials ...*corev1.Secret) cluster.Access {
	t.Helper()
	api := clustertest.API()
	if err := (record.Store{Kubernetes: api}).UpdateRecord(t.Context(), func(r *record.Record) error {
		r.Manifest = theManifest
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	held, err := api.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), record.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/secrets/"+machines.CredentialsSecret):
			_ = json.NewEncoder(w).Encode(held)
		case len(credentials) > 0:
			_ = json.NewEncoder(w).Encode(credentials[0])
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(corev1.Resource("secrets"), "x").Status())
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return cluster.Access{Kubeconfig: fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x"}],
		"clusters": [{"name": "x", "cluster": {"server": %q, "certificate-authority-data": %q}}]}`, server.URL,
		base64.StdEncoding.EncodeToString(ca))}
}

// pooled is a Host, a Machine for it, and the provider.
type pooled struct {
	*Provider
	t      *testing.T
	random *rand.Rand
	m      *v1alpha1.Machine
	came   error // result of the run on the host; errUnderWay while it runs
	made   int   // Machines
	now    time.Time
	was    machinetest.State
	seen   map[machinetest.Transition]bool
}

var errUnderWay = errors.New("a run is under way")

func newPooled(t *testing.T, access cluster.Access, scheme *runtime.Scheme, random *rand.Rand) *pooled {
	t.Helper()
	p := &pooled{t: t, random: random, now: time.Unix(1e9, 0), was: machinetest.None}
	c := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kubeone.Host{}, &v1alpha1.Machine{}).
		WithObjects(&kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "host"}, Spec: kubeone.HostSpec{Address: "192.0.2.9"},
		}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, of string,
			o client.Object, options ...client.SubResourceUpdateOption) error {
			err := c.SubResource(of).Update(ctx, o, options...)
			p.noteState() // one reconciliation may write twice
			return err
		}}).Build()
	p.Provider = New(c, c, &Site{Access: access, Now: func() time.Time { return p.now }})
	return p
}

// runIs sets the state of the only run, so that no other begins.
func (p *pooled) runIs(uid types.UID, gone bool) {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	of := &v1alpha1.Machine{}
	if p.m != nil {
		of = p.m
	}
	one := &run{goal: targetKey(of, gone) + " on host", cancel: func() {}, ended: time.Now(), err: p.came}
	if one.finished = !errors.Is(p.came, errUnderWay); one.finished && one.err != nil {
		one.failed = maxFailures
	}
	p.runs.of = map[types.UID]*run{uid: one}
}

// says sets the owner in the host's marker, sometimes to a Machine that does not exist.
func (p *pooled) says(h *kubeone.Host) {
	switch whose := p.random.IntN(12); {
	case whose == 0:
		p.owners.noteOwner(h.UID, kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "uid-of-yesterday"})
	case whose == 1 && p.m != nil:
		p.owners.noteOwner(h.UID, kubeone.HostClaim{Namespace: "ns", Name: "m", UID: p.m.UID})
	default:
		p.owners.noteOwner(h.UID, kubeone.HostClaim{})
	}
}

// host returns the Host; nil once it is deleted.
func (p *pooled) host() *kubeone.Host {
	p.t.Helper()
	h := &kubeone.Host{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Name: "w-1"}, h); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// happens applies one event.
func (p *pooled) happens(h *kubeone.Host) {
	p.t.Helper()
	p.now = p.now.Add(retryFailed)
	switch what := p.random.IntN(16); {
	case what < 4:
		p.came = errUnderWay
	case what < 8:
		p.came = nil
	case what < 10:
		p.came = errors.New("broken")
	case what < 12 && p.m == nil:
		p.made++
		p.m = &v1alpha1.Machine{Spec: specOf("")}
		p.m.Namespace, p.m.Name, p.m.UID = "ns", "m", types.UID(fmt.Sprint("uid-", p.made))
		made := p.m.DeepCopy()
		p.must(p.client.Create(p.t.Context(), made))
	case what == 12 && p.m != nil:
		p.m.DeletionTimestamp = &metav1.Time{Time: p.now}
	case what == 13 && p.m != nil: // it disappears without returning its host
		p.must(p.client.Delete(p.t.Context(), p.m.DeepCopy()))
		p.m = nil
	case what == 14 && h.Status.State == kubeone.HostReturning && p.m == nil: // kubeone host remove --force
		h.Finalizers = nil
		p.must(p.client.Update(p.t.Context(), h))
		p.must(p.client.Delete(p.t.Context(), h))
	case what == 15 && h.Status.Claim == nil && h.Status.State != "": // kubeone host remove
		p.must(p.client.Delete(p.t.Context(), h))
	}
}

func (p *pooled) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// look reconciles the Machine and the Host.
func (p *pooled) look() {
	p.t.Helper()
	if m := p.m; m != nil {
		gone := m.DeletionTimestamp != nil
		h := p.host()
		if h != nil && h.Status.Claim == nil {
			p.says(h)
		}
		leaves := h != nil && h.Status.State == kubeone.HostReturning && h.Status.Claim.UID == m.UID
		p.runIs(m.UID, gone || leaves)
		if gone {
			if p.Delete(p.t.Context(), m) == nil {
				p.must(p.client.Delete(p.t.Context(), m.DeepCopy()))
				p.m = nil
			}
		} else if is, found, err := p.Exists(p.t.Context(), m); err != nil {
			p.t.Fatal(err)
		} else if !found || !is.Complete {
			_, _ = p.Create(p.t.Context(), m) // its error is for the Machine's status
		}
	}
	h := p.host()
	if h != nil && h.Status.Claim != nil {
		p.runIs(h.Status.Claim.UID, true)
	} else if h != nil {
		p.says(h)
	}
	_, err := hosts{p.Provider}.Reconcile(p.t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "w-1"}})
	p.must(err)
	p.noteState()
}

// noteState records the Host's state.
func (p *pooled) noteState() {
	p.t.Helper()
	is := machinetest.Gone
	if h := p.host(); h != nil {
		is = machinetest.State(h.Status.State)
	}
	if is != p.was && is != "" {
		p.seen[machinetest.Transition{From: p.was, To: is}] = true
		p.was = is
	}
}

// TestHostsLiveAsDrawn applies random events to a Host and its Machines and compares the state transitions with the
// diagram in docs/machines.md.
func TestHostsLiveAsDrawn(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, kubeone.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	access, random := recordOf(t), rand.New(rand.NewPCG(1, 2)) // deterministic
	seen := map[machinetest.Transition]bool{}
	for range 60 {
		p := newPooled(t, access, scheme, random)
		p.seen = seen
		for range 60 {
			p.look()
			h := p.host()
			if h == nil {
				break
			}
			p.happens(h)
		}
	}
	machinetest.CheckDrawing(t, "../../../../docs/machines.md", "Host", seen)
}
