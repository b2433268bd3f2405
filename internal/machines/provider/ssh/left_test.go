package ssh

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/observed"
)

// TestAHostIsItsOwnNotesMachines restores etcd from a time before a Machine claimed the host: the Host is free, but the
// host's marker names the Machine.
func TestAHostIsItsOwnNotesMachines(t *testing.T) {
	t.Parallel()
	machine := func(uid string) *v1alpha1.Machine {
		return &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: types.UID(uid)}, Spec: specOf(""),
		}
	}
	other := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w-2", UID: "other"}, Status: kubeone.HostStatus{
		State: kubeone.HostJoined, Claim: &kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "m-1"},
	}}
	note := kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "m-1"}
	for name, c := range map[string]struct {
		note    kubeone.HostClaim
		objects []client.Object
		state   kubeone.HostState
		claimed bool
	}{
		"nobody's":                     {kubeone.HostClaim{}, []client.Object{machine("m-1")}, kubeone.HostFree, false},
		"of a Machine that is no more": {note, nil, kubeone.HostReturning, true},
		"of one whose name another has": {note, []client.Object{machine("m-2")},
			kubeone.HostReturning, true},
		"of one that is there": {note, []client.Object{machine("m-1")}, kubeone.HostClaimed, true},
		"of one that has another host": {note, []client.Object{machine("m-1"), other},
			kubeone.HostFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := poolWith(t, append(c.objects, &kubeone.Host{
				ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "host", Finalizers: []string{HostFinalizer}},
				Status:     kubeone.HostStatus{State: kubeone.HostFree},
			})...)
			p.owners.noteOwner("host", c.note)
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "w-1"}}
			if _, err := (hosts{p}).Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			h := &kubeone.Host{}
			if err := p.client.Get(t.Context(), client.ObjectKey{Name: "w-1"}, h); err != nil {
				t.Fatal(err)
			}
			claim := h.Status.Claim
			if h.Status.State != c.state || (claim != nil) != c.claimed || claim != nil && *claim != note {
				t.Errorf("it is %s with %+v, want %s: %s", h.Status.State, claim, c.state, h.Status.Message)
			}
		})
	}
}

func poolWith(t *testing.T, objects ...client.Object) *Provider {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, kubeone.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kubeone.Host{}).
		WithObjects(objects...).Build()
	return New(c, c, &Site{Access: recordOf(t), Now: time.Now})
}

// A Machine waits for a host whose owner is not known yet.
func TestAHostThatHasNotSaidWhoseItIsIsGivenToNobody(t *testing.T) {
	t.Parallel()
	p := poolWith(t, &kubeone.Host{
		ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "host", Finalizers: []string{HostFinalizer}},
		Spec:       kubeone.HostSpec{Address: "192.0.2.9"}, Status: kubeone.HostStatus{State: kubeone.HostFree},
	})
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m-1"}, Spec: specOf("")}
	_, err := p.claimHost(t.Context(), m)
	var waiting *provider.Waiting
	if !errors.As(err, &waiting) || waiting.Reason != "PoolBusy" ||
		!strings.Contains(waiting.Message, "have not been checked") {
		t.Errorf("before it was asked: %v", err)
	}
	p.owners.noteOwner("host", kubeone.HostClaim{})
	if h, err := p.claimHost(t.Context(), m); err != nil || h == nil || h.Status.Claim.UID != m.UID {
		t.Errorf("once it is known to be nobody's: %v, %+v", err, h)
	}
}

// A silent host is claimed only if there is no other.
func TestHostsThatAnswerGoFirst(t *testing.T) {
	t.Parallel()
	host := func(name string) *kubeone.Host {
		return &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{HostFinalizer}},
			Spec:       kubeone.HostSpec{Address: "192.0.2.9"}, Status: kubeone.HostStatus{State: kubeone.HostFree},
		}
	}
	p := poolWith(t, host("w-1"), host("w-2"))
	p.owners.noteFailure("w-1")
	early := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "e"}, Spec: specOf("")}
	var waiting *provider.Waiting
	if h, err := p.claimHost(t.Context(), early); !errors.As(err, &waiting) || waiting.Reason != reasonPoolBusy {
		t.Errorf("before the other one has been asked: %v, %v", h, err)
	}
	p.owners.noteOwner("w-2", kubeone.HostClaim{})
	for _, want := range []string{"w-2", "w-1"} {
		m := &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: want, UID: types.UID("of " + want)}, Spec: specOf(""),
		}
		if h, err := p.claimHost(t.Context(), m); err != nil || h == nil || h.Name != want {
			t.Errorf("got %v, %v, want %s", h, err, want)
		}
	}
}

// A failed owner check is repeated: the host is silent at first.
func TestALookThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	p := poolWith(t)
	h := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "host"}}
	p.runs.of[ownerRunKey(h)] = &run{goal: checkOwnerGoal, finished: true, ended: time.Now(),
		err: errors.New("no route")}
	result, err := hosts{p}.checkOwner(context.Background(), h)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("%+v, %v: want it asked again", result, err)
	}
	if _, known := p.owners.ownerOf("host"); known {
		t.Error("it is known whose a host is that has said nothing")
	}
}

func TestNotesOfHosts(t *testing.T) {
	t.Parallel()
	whole := observed.Marker{Cluster: "test", Machine: "ns/m", ID: "m-1"}
	for name, c := range map[string]struct {
		change func(*observed.Marker)
		want   kubeone.HostClaim
	}{
		"of a Machine":       {func(*observed.Marker) {}, kubeone.HostClaim{Namespace: "ns", Name: "m", UID: "m-1"}},
		"of another cluster": {func(m *observed.Marker) { m.Cluster = "prod" }, kubeone.HostClaim{}},
		"of the manifest":    {func(m *observed.Marker) { m.Machine = "" }, kubeone.HostClaim{}},
		"without a UID":      {func(m *observed.Marker) { m.ID = "" }, kubeone.HostClaim{}},
		"of no namespace":    {func(m *observed.Marker) { m.Machine = "m" }, kubeone.HostClaim{}},
		"of no name":         {func(m *observed.Marker) { m.Machine = "ns/.." }, kubeone.HostClaim{}},
		"of no such name":    {func(m *observed.Marker) { m.Machine = "ns.x/m" }, kubeone.HostClaim{}},
	} {
		m := whole
		c.change(&m)
		if got := claimInMarker(&m, "test"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := claimInMarker(nil, "test"); got != (kubeone.HostClaim{}) {
		t.Errorf("without a note: %+v", got)
	}
}
