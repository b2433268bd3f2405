package controllers

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/machinetest"
)

// slow is a provider with one host that changes in steps, as a real one does.
type slow struct {
	free, begun, joined bool // the host is free, belongs to the Machine, is a Node
	refused, bare       bool // the spec is invalid; the host is reset if it was the Machine's
	changes             bool // the host is being changed
}

var _ provider.Updater = (*slow)(nil)

func (s *slow) refusal() error {
	if s.refused {
		return &provider.Refused{Reason: v1alpha1.InvalidConfiguration, Message: "refused"}
	}
	return nil
}

func (s *slow) Create(context.Context, *v1alpha1.Machine) (provider.Instance, error) {
	switch err := s.refusal(); {
	case err != nil && s.begun:
		return s.instance(), err
	case err != nil:
		return provider.Instance{}, err
	case !s.begun && !s.free:
		return provider.Instance{}, &provider.Waiting{Reason: "PoolEmpty"}
	}
	s.begun, s.free = true, false
	if !s.joined {
		return s.instance(), &provider.Waiting{Reason: provider.Working}
	}
	return s.instance(), nil
}

func (s *slow) Exists(context.Context, *v1alpha1.Machine) (provider.Instance, bool, error) {
	if !s.begun {
		return provider.Instance{}, false, nil
	}
	return s.instance(), true, nil
}

func (s *slow) instance() provider.Instance {
	return provider.Instance{Node: "w-1", Complete: s.joined}
}

func (s *slow) Delete(context.Context, *v1alpha1.Machine) error {
	if s.begun && !s.bare {
		return &provider.Waiting{Reason: "Deleting"}
	}
	return nil
}

func (*slow) Change(_, _ v1alpha1.MachineSpec) rollout.Change { return rollout.InPlace }

func (s *slow) Update(context.Context, *v1alpha1.Machine) error {
	if err := s.refusal(); err != nil || !s.changes {
		return err
	}
	return &provider.Waiting{Reason: provider.Working}
}

// one is a Machine of the slow provider with its controller.
type one struct {
	t          *testing.T
	random     *rand.Rand
	c          client.Client
	p          *slow
	controller *Machines
	key        types.NamespacedName
	now        machinetest.State
}

func newOne(t *testing.T, scheme *runtime.Scheme, random *rand.Rand) *one {
	t.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid"}}
	m.Spec.ProviderSpec.Value.CloudProvider = "slow"
	m.Spec.Versions.Kubelet = "1.36.1"
	o := &one{t: t, random: random, p: &slow{}, key: client.ObjectKeyFromObject(m), now: machinetest.None}
	o.c = clientfake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.Machine{}, &corev1.Node{}).WithObjects(m).Build()
	o.controller = &Machines{
		Client: o.c, Providers: provider.Set{"slow": o.p}, Events: &events.FakeRecorder{}, Now: time.Now,
	}
	return o
}

// machine returns nil once the Machine is deleted.
func (o *one) machine() *v1alpha1.Machine {
	o.t.Helper()
	m := &v1alpha1.Machine{}
	if err := o.c.Get(o.t.Context(), o.key, m); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		o.t.Fatal(err)
	}
	return m
}

// join makes the host a Node with the Machine's versions.
func (o *one) join(m *v1alpha1.Machine) {
	o.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "w-1", Labels: map[string]string{desired.OwnerLabel: string(m.UID)},
	}}
	err := o.c.Create(o.t.Context(), n)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		o.t.Fatal(err)
	}
	if err := o.c.Get(o.t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		o.t.Fatal(err)
	}
	n.Status.NodeInfo.KubeletVersion = "v" + m.Spec.Versions.Kubelet
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := o.c.Status().Update(o.t.Context(), n); err != nil {
		o.t.Fatal(err)
	}
}

// happens makes the event with that number happen, if it can.
func (o *one) happens(what int, m *v1alpha1.Machine) {
	o.t.Helper()
	switch leaving := m.DeletionTimestamp != nil; what {
	case 0:
		o.p.free = !o.p.begun
	case 1, 2: // the host joins, or its change ends
		if o.p.begun {
			o.p.joined, o.p.changes = true, false
			o.join(m)
		}
	case 3: // it could not join, and is returned
		o.p.begun = o.p.begun && o.p.joined
	case 4:
		o.p.refused = !o.p.refused && !leaving
	case 5: // other versions
		was := m.DeepCopy()
		m.Spec.Versions.Kubelet = map[string]string{"1.36.1": "1.36.3", "1.36.3": "1.36.1"}[m.Spec.Versions.Kubelet]
		o.p.changes = true
		if err := o.c.Patch(o.t.Context(), m, client.MergeFrom(was)); err != nil {
			o.t.Fatal(err)
		}
	case 6:
		if o.random.IntN(4) == 0 {
			if err := o.c.Delete(o.t.Context(), m); err != nil {
				o.t.Fatal(err)
			}
		}
	case 7:
		o.p.bare = leaving
	}
}

// look reconciles the Machine and returns its phases before and after.
func (o *one) look() machinetest.Transition {
	o.t.Helper()
	var waits *provider.Waiting
	if _, err := o.controller.Reconcile(o.t.Context(), reconcile.Request{NamespacedName: o.key}); err != nil &&
		!errors.As(err, &waits) {
		o.t.Fatal(err)
	}
	was := o.now
	if m := o.machine(); m == nil {
		o.now = machinetest.Gone
	} else if o.now = machinetest.State(m.Status.Phase); o.now == "" {
		o.t.Fatal("the controller has looked, and no phase is written")
	}
	return machinetest.Transition{From: was, To: o.now}
}

// begun returns a Machine that has just received its host.
func begun(t *testing.T) *one {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	o := newOne(t, scheme, rand.New(rand.NewPCG(1, 1)))
	o.p.free = true
	o.look()
	return o
}

// When a host that could not join is returned, the status forgets its Node.
func TestANodeThatIsNoMoreIsNotSaid(t *testing.T) {
	t.Parallel()
	o := begun(t)
	o.join(o.machine()) // its kubelet runs, but the join does not end
	o.look()
	if m := o.machine(); m.Status.NodeRef == nil || m.Status.Versions == nil {
		t.Fatalf("there is a Node: %+v", m.Status)
	}
	o.p.begun = false
	if err := o.c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}); err != nil {
		t.Fatal(err)
	}
	o.look()
	m := o.machine()
	if m.Status.NodeRef != nil || m.Status.Versions != nil || len(m.Status.Addresses) > 0 ||
		m.Status.Phase != v1alpha1.Pending || meta.IsStatusConditionTrue(m.Status.Conditions, machine.ConditionReady) {
		t.Errorf("it has no host any more: %+v", m.Status)
	}
}

// A refused spec changes no instance, and the status still shows the Node. A Machine of an unknown provider is never
// written, even when it is deleted.
func TestWhatIsNotThisProgramsToSay(t *testing.T) {
	t.Parallel()
	o := begun(t)
	o.p.joined = true
	o.join(o.machine())
	o.look()
	picky := &validating{slow: o.p}
	o.controller.Providers = provider.Set{"slow": picky}
	m := o.machine()
	m.Spec.ObjectMeta.Labels = map[string]string{"of-refused": "yes"}
	if err := o.c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	o.look()
	n := &corev1.Node{}
	if err := o.c.Get(t.Context(), client.ObjectKey{Name: "w-1"}, n); err != nil || n.Labels["of-refused"] != "" {
		t.Errorf("its Node has labels %v of a spec that is refused: %v", n.Labels, err)
	}
	if err := o.c.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	o.look()
	if m := o.machine(); meta.IsStatusConditionTrue(m.Status.Conditions, machine.ConditionReady) {
		t.Errorf("its Node is gone: %+v", m.Status)
	}
	recorder := events.NewFakeRecorder(10)
	o.controller.Providers, o.controller.Events = provider.Set{}, recorder
	for _, deleted := range []bool{false, true} {
		if deleted {
			if err := o.c.Delete(t.Context(), o.machine()); err != nil {
				t.Fatal(err)
			}
		}
		before := o.machine()
		o.look()
		if diff := cmp.Diff(before, o.machine()); diff != "" {
			t.Errorf("deleted: %t, it is another one (-before +after):\n%s", deleted, diff)
		}
		if said := eventOf(recorder); !strings.Contains(said, "ignores this object: kubeone does not support the "+
			`provider "slow"`) {
			t.Errorf("deleted: %t, the Event says %s", deleted, said)
		}
	}
}

// validating refuses every spec.
type validating struct{ *slow }

func (*validating) Validate(v1alpha1.MachineSpec) error { return errors.New("refused") }

// TestMachinesLiveAsDrawn applies random events to Machines and compares the phase transitions with the diagram in
// docs/machines.md.
func TestMachinesLiveAsDrawn(t *testing.T) {
	t.Parallel()
	seen := map[machinetest.Transition]bool{}
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) // deterministic
	for range 30 {
		o := newOne(t, scheme, random)
		o.happens([]int{0, 4, 5}[random.IntN(3)], o.machine())
		for range 30 {
			if tr := o.look(); tr.From != tr.To {
				seen[tr] = true
			}
			m := o.machine()
			if m == nil {
				break
			}
			o.happens(random.IntN(8), m)
		}
	}
	machinetest.CheckDrawing(t, "../../../docs/machines.md", "Machine", seen)
}
