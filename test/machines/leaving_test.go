//go:build e2e

package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/provider/fake"
)

// TestSlowMachines is about Machines that are slow to come and go. This API server has no garbage
// collector: the tests collect garbage themselves, in the worst order.
func TestSlowMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{CreateDelay: 300 * time.Millisecond, DeleteDelay: 200 * time.Millisecond})
	for _, part := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"0 to 100 to 0, while they are being made", checkHundred},
		{"two deployments whose selectors overlap", checkOverlapping},
		{"a deployment is deleted in the background", deletedInBackground},
		{"a deployment is deleted in the foreground", deletedInForeground},
		{"a deployment is deleted without what it owns", deletedAsOrphan},
		{"a Machine with a foreign finalizer, deleted twice", foreignFinalizer},
		{"a Node of the Machine's name that is not its own", foreignNode},
	} {
		t.Run(part.name, func(t *testing.T) {
			w.t = t
			part.test(t, w)
			w.nothingLeft()
		})
	}
	w.t = t
}

// nothingLeft waits until there is no machine and no Node.
func (w *world) nothingLeft() {
	w.t.Helper()
	w.awaitRight("no machine and no Node is left", func() string {
		var nodes corev1.NodeList
		if err := w.List(w.t.Context(), &nodes); err != nil || len(nodes.Items) > 0 || w.fake.Count() > 0 {
			return fmt.Sprintf("%d Nodes, %d machines, %v", len(nodes.Items), w.fake.Count(), err)
		}
		return ""
	})
}

func (w *world) createObject(o client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) scaleDeployment(name string, replicas int32) {
	w.t.Helper()
	changeObject(w, &v1alpha1.MachineDeployment{}, name, func(md *v1alpha1.MachineDeployment) {
		md.Spec.Replicas = &replicas
	})
}

// deleteLabelled deletes all objects of a kind with the deployment's label.
func (w *world) deleteLabelled(kind client.Object, name string) {
	w.t.Helper()
	if err := w.DeleteAllOf(w.t.Context(), kind, client.InNamespace(namespace),
		client.MatchingLabels{"app": name}); err != nil {
		w.t.Fatal(err)
	}
}

// noMachines waits until a deployment has no Machines.
func (w *world) noMachines(name string) {
	w.t.Helper()
	w.awaitRight(name+" has no Machine", func() string {
		if left := w.machinesOf(name); len(left) > 0 {
			return fmt.Sprint(slices.Sorted(maps.Keys(left)))
		}
		return ""
	})
}

// noneIsMade watches a deployment's Machines for new ones. The returned function ends the watch.
func (w *world) noneIsMade(name string) (end func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	there := w.machinesOf(name)
	events, err := w.Watch(ctx, &v1alpha1.MachineList{}, client.InNamespace(namespace),
		client.MatchingLabels{"app": name})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			if m, ok := e.Object.(*v1alpha1.Machine); ok && there[m.Name].Name == "" {
				w.t.Errorf("Machine %s was made", m.Name)
			}
		}
	}()
	return func() {
		cancel()
		events.Stop()
		<-done
	}
}

// seenAll waits until the controllers have reconciled every object: new controllers reconcile all objects, and a new
// deployment comes last.
func (w *world) seenAll() {
	w.t.Helper()
	w.stop()
	w.startControllers()
	w.createObject(fakeDeployment("seen", 1, "1.36.3"))
	w.awaitComplete("seen", 1, "1.36.3")
	w.removeDeployment("seen", metav1.DeletePropagationBackground)
}

func checkHundred(_ *testing.T, w *world) {
	w.createObject(fakeDeployment("hundred", 0, "1.36.3"))
	w.scaleDeployment("hundred", 100)
	w.awaitRight("some run, and others are being made", func() string {
		phases := map[v1alpha1.MachinePhase]int{}
		for _, m := range w.machinesOf("hundred") {
			phases[m.Status.Phase]++
		}
		if phases[v1alpha1.Running] == 0 || phases[v1alpha1.Provisioning] == 0 {
			return fmt.Sprint(phases)
		}
		return ""
	})
	w.scaleDeployment("hundred", 0)
	w.awaitComplete("hundred", 0, "1.36.3")
	w.nothingLeft()
	w.removeDeployment("hundred", metav1.DeletePropagationBackground)
}

func checkOverlapping(t *testing.T, w *world) {
	labels := map[string]string{"app": "both"}
	var of []*v1alpha1.MachineDeployment
	for i, name := range []string{"one", "other"} {
		md := fakeDeployment(name, int32(i+2), "1.36.3")
		md.Spec.Selector.MatchLabels, md.Spec.Template.ObjectMeta.Labels = labels, labels
		w.createObject(md)
		of = append(of, md)
	}
	settled := func(want int) func() string {
		return func() string {
			all := w.machinesOf("both")
			for _, md := range of {
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
					return err.Error()
				}
				if n := md.Status.AvailableReplicas; n != *md.Spec.Replicas || n != md.Status.Replicas {
					return fmt.Sprintf("%s: %+v", md.Name, md.Status)
				}
			}
			if len(all) != want {
				return fmt.Sprintf("there are %d Machines", len(all))
			}
			return ""
		}
	}
	w.awaitRight("each has its own Machines", settled(5))
	before := w.machinesOf("both")
	w.seenAll()
	w.awaitRight("and they stay what they are", settled(5))
	after := w.machinesOf("both")
	for name, m := range before {
		is, was := metav1.GetControllerOf(ptr(after[name])), metav1.GetControllerOf(&m)
		if is == nil || is.UID != was.UID {
			t.Errorf("%s was of %s, and is of %v", name, was.Name, is)
		}
	}
	for _, md := range of {
		if err := w.Delete(t.Context(), md); err != nil {
			t.Fatal(err)
		}
	}
	w.collectGarbage("both")
}

func ptr[T any](v T) *T { return &v }

// deleteAs deletes a deployment of two Machines, and returns the Machines from before.
func (w *world) deleteAs(name string, how metav1.DeletionPropagation) map[string]v1alpha1.Machine {
	w.t.Helper()
	md := fakeDeployment(name, 2, "1.36.3")
	w.createObject(md)
	w.awaitComplete(name, 2, "1.36.3")
	if err := w.Delete(w.t.Context(), md, client.PropagationPolicy(how)); err != nil {
		w.t.Fatal(err)
	}
	return w.machinesOf(name)
}

// letGo removes a finalizer of the garbage collector from a deployment, which ends its deletion.
func (w *world) letGo(name, finalizer string) {
	w.t.Helper()
	changeObject(w, &v1alpha1.MachineDeployment{}, name, func(md *v1alpha1.MachineDeployment) {
		if !controllerutil.RemoveFinalizer(md, finalizer) {
			w.t.Errorf("%s has no finalizer %s", name, finalizer)
		}
	})
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.MachineDeployment{})
	if !apierrors.IsNotFound(err) {
		w.t.Errorf("%s is there: %v", name, err)
	}
}

// deletedInBackground: the deployment disappears at once, and its sets see their Machines deleted.
func deletedInBackground(_ *testing.T, w *world) {
	w.deleteAs("background", metav1.DeletePropagationBackground)
	end := w.noneIsMade("background")
	defer end()
	w.deleteLabelled(&v1alpha1.Machine{}, "background")
	w.noMachines("background")
	w.seenAll()
	w.deleteLabelled(&v1alpha1.MachineSet{}, "background")
}

// deletedInForeground: the deployment stays until its dependents are deleted, and creates no replacements.
func deletedInForeground(_ *testing.T, w *world) {
	w.deleteAs("foreground", metav1.DeletePropagationForeground)
	end := w.noneIsMade("foreground")
	defer end()
	w.deleteLabelled(&v1alpha1.Machine{}, "foreground")
	w.noMachines("foreground")
	w.seenAll()
	w.deleteLabelled(&v1alpha1.MachineSet{}, "foreground")
	w.seenAll()
	w.letGo("foreground", metav1.FinalizerDeleteDependents)
}

// deletedAsOrphan: sets and Machines stay, a set without an owner keeps its number, and the next deployment adopts all.
func deletedAsOrphan(t *testing.T, w *world) {
	before := w.deleteAs("orphaned", metav1.DeletePropagationOrphan)
	var sets v1alpha1.MachineSetList
	if err := w.List(t.Context(), &sets, client.InNamespace(namespace),
		client.MatchingLabels{"app": "orphaned"}); err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d sets, %v", len(sets.Items), err)
	}
	set := sets.Items[0].Name
	changeObject(w, &v1alpha1.MachineSet{}, set, func(ms *v1alpha1.MachineSet) { ms.OwnerReferences = nil })
	w.seenAll() // a deployment under deletion adopts nothing
	ms := &v1alpha1.MachineSet{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: set}, ms); err != nil ||
		len(ms.OwnerReferences) > 0 {
		t.Errorf("the set is of %v, %v", ms.OwnerReferences, err)
	}
	w.letGo("orphaned", metav1.FinalizerOrphanDependents)
	if after := w.machinesOf("orphaned"); !maps.EqualFunc(before, after, func(a, b v1alpha1.Machine) bool {
		return a.UID == b.UID && b.DeletionTimestamp == nil
	}) {
		t.Errorf("the Machines were %v, and are %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	first := slices.Min(slices.Collect(maps.Keys(before)))
	if err := w.Delete(t.Context(), ptr(before[first])); err != nil {
		t.Fatal(err)
	}
	w.awaitRight("the set alone has replaced one", func() string {
		of := w.machinesOf("orphaned")
		if _, there := of[first]; there || len(of) != 2 {
			return fmt.Sprint(slices.Sorted(maps.Keys(of)))
		}
		return ""
	})
	end := w.noneIsMade("orphaned")
	w.createObject(fakeDeployment("orphaned", 2, "1.36.3"))
	w.awaitComplete("orphaned", 2, "1.36.3")
	end()
	w.removeDeployment("orphaned", metav1.DeletePropagationBackground)
}

// foreignFinalizer: the machine and its Node disappear, but the Machine stays for another controller, for any time.
// Nothing is created for it again.
func foreignFinalizer(t *testing.T, w *world) {
	const foreignDefinition = "example.com/theirs"
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept", Finalizers: []string{foreignDefinition}},
		Spec:       machineSpec("1.36.3"),
	}
	w.createObject(m)
	is := func(phase v1alpha1.MachinePhase, finalizers ...string) func() string {
		return func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				return err.Error()
			}
			slices.Sort(m.Finalizers)
			if m.Status.Phase != phase || !slices.Equal(m.Finalizers, finalizers) {
				return fmt.Sprintf("%s, with %v", m.Status.Phase, m.Finalizers)
			}
			return ""
		}
	}
	w.awaitRight("it runs", is(v1alpha1.Running, foreignDefinition, v1alpha1.MachineFinalizer))
	for range 2 {
		if err := w.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitRight("only the foreign finalizer is left", is(v1alpha1.Deleting, foreignDefinition))
	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.seenAll()
	w.nothingLeft()
	if why := is(v1alpha1.Deleting, foreignDefinition)(); why != "" {
		t.Error(why)
	}
	changeObject(w, &v1alpha1.Machine{}, "kept", func(m *v1alpha1.Machine) { m.Finalizers = nil })
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

// foreignNode: the controllers do not write to a Node of another machine. The Machine gets its Node once the name is
// free.
func foreignNode(t *testing.T, w *world) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	w.createObject(node)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken"},
		Spec: machineSpec("1.36.3")}
	waits := func() {
		t.Helper()
		w.createObject(m)
		w.awaitRight("the Machine waits", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				return err.Error()
			}
			if m.Status.Phase != v1alpha1.Provisioning || m.Status.NodeRef != nil || len(m.Status.Conditions) < 2 {
				return fmt.Sprintf("%s, %v, %s", m.Status.Phase, m.Status.NodeRef, describeMachine(*m))
			}
			return ""
		})
	}
	gone := func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	}
	waits()
	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.awaitRight("a Machine that never was a Node is gone", gone)
	now := &corev1.Node{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(node), now); err != nil ||
		now.ResourceVersion != node.ResourceVersion {
		t.Fatalf("the foreign Node was written: %+v, %v", now.ObjectMeta, err)
	}
	m = &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken"},
		Spec: machineSpec("1.36.3")}
	waits()
	if err := w.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.awaitRight("the name is free, and the Machine is a Node", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if m.Status.Phase != v1alpha1.Running {
			return describeMachine(*m)
		}
		return ""
	})
	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.awaitRight("it is gone", gone)
}
