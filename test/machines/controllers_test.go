//go:build e2e

package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/provider/fake"
	"kubeone/internal/model/desired"
	"kubeone/test/lab/apiserver"
)

// world is an API server, and controllers with the fake provider.
type world struct {
	client.WithWatch
	t      *testing.T
	config *rest.Config
	fake   *fake.Provider
	stop   func() // ends the controllers and waits for them
}

const namespace = "kube-system"

// newWorld starts an API server and controllers. The options set the delays of machines.
func newWorld(t *testing.T, o fake.Options) *world {
	t.Helper()
	w := &world{t: t, config: apiserver.Start(t.Context(), t, "1.36.3")}
	if _, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{
		Paths: []string{"../../api/cluster/v1alpha1/crds"}, ErrorIfPathMissing: true, MaxTime: within,
	}); err != nil {
		t.Fatal(err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if w.WithWatch, err = client.NewWithWatch(w.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.fake = fake.New(w, o)
	w.startControllers()
	t.Cleanup(func() { w.stop() })
	return w
}

// startControllers starts controllers.
func (w *world) startControllers() {
	w.t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := manager.New(w.config, manager.Options{Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	if err := controllers.Add(ctx, m, provider.Set{fake.Name: w.fake},
		controllers.Options{SkipNameValidation: true}); err != nil {
		cancel()
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the controllers end: %v", err)
		}
	})
}

// fakeDeployment returns a MachineDeployment of the fake provider.
func fakeDeployment(name string, replicas int32, kubelet string) *v1alpha1.MachineDeployment {
	labels := map[string]string{"app": name}
	md := &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: labels},
		},
	}
	md.Spec.Template.ObjectMeta.Labels = labels
	md.Spec.Template.Spec = machineSpec(kubelet)
	return md
}

func machineSpec(kubelet string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{
		ProviderSpec: v1alpha1.ProviderSpec{Value: v1alpha1.ProviderConfig{CloudProvider: fake.Name}},
		Versions:     v1alpha1.MachineVersionInfo{Kubelet: kubelet},
	}
}

// within limits every wait of a test.
const within = 5 * time.Minute

// awaitRight waits until wrong returns "". It checks again whenever a Machine, set or deployment changes.
func (w *world) awaitRight(what string, wrong func() string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	watch, err := w.Watch(ctx, &v1alpha1.MachineList{}, client.InNamespace(namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	defer watch.Stop()
	tick := time.NewTicker(100 * time.Millisecond) // other kinds change too
	defer tick.Stop()
	for {
		why := wrong()
		if why == "" {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("%s: %s", what, why)
		case <-watch.ResultChan():
		case <-tick.C:
		}
	}
}

// machinesOf returns the Machines of a deployment by name.
func (w *world) machinesOf(name string) map[string]v1alpha1.Machine {
	w.t.Helper()
	var all v1alpha1.MachineList
	mine := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{"app": name}}
	if err := w.List(w.t.Context(), &all, mine...); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]v1alpha1.Machine{}
	for _, m := range all.Items {
		out[m.Name] = m
	}
	return out
}

// awaitComplete waits until a deployment has that many Machines of that version, all ready, and its status agrees.
func (w *world) awaitComplete(name string, replicas int32, kubelet string) {
	w.t.Helper()
	w.awaitRight(fmt.Sprintf("%s has %d Machines of %s", name, replicas, kubelet), func() string {
		md := &v1alpha1.MachineDeployment{}
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, md); err != nil {
			return err.Error()
		}
		s := md.Status
		if s.ObservedGeneration != md.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas ||
			s.ReadyReplicas != replicas || s.AvailableReplicas != replicas || s.UnavailableReplicas != 0 {
			return fmt.Sprintf("%+v", s)
		}
		of := w.machinesOf(name)
		for _, m := range of {
			if m.Status.Phase != v1alpha1.Running || m.Spec.Versions.Kubelet != kubelet || m.Status.NodeRef == nil {
				return fmt.Sprintf("%s is %s, %s, of %s", m.Name, m.Status.Phase, describeMachine(m),
					m.Spec.Versions.Kubelet)
			}
		}
		if len(of) != int(replicas) {
			return fmt.Sprintf("there are %d", len(of))
		}
		return ""
	})
}

func describeMachine(m v1alpha1.Machine) string {
	var out []string
	for _, c := range m.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Message))
	}
	return strings.Join(out, ", ")
}

// changeObject updates an object, and retries on conflicts.
func changeObject[O client.Object](w *world, o O, name string, edit func(O)) {
	w.t.Helper()
	w.awaitRight("change "+name, func() string {
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			w.t.Fatal(err)
		}
		edit(o)
		switch err := w.Update(w.t.Context(), o); {
		case apierrors.IsConflict(err):
			return "the object changed meanwhile"
		case err != nil:
			w.t.Fatal(err)
		}
		return ""
	})
}

func TestControllersWithTheFakeProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	for _, part := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"a standalone Machine becomes a Node, and goes", checkStandalone},
		{"an unknown provider is named in the status, and the Machine goes", unknownProvider},
		{"a deployment makes Machines, and is scaled", scaledDeployment},
		{"a roll-out by replacement keeps its limits, with the controllers killed again and again", rolledOut},
		{"labels, annotations and taints are given and taken back", checkMetadata},
		{"a broken Machine is replaced, and many are not", checkRemediation},
		{"0 to 30 to 0, quickly", checkQuickScaling},
		{"a set alone adopts, lets go, and leaves orphans", setAlone},
		{"nothing is written when nothing changes", checkIdle},
	} {
		t.Run(part.name, func(t *testing.T) {
			w.t = t
			part.test(t, w)
		})
	}
	w.t = t
}

func checkStandalone(t *testing.T, w *world) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone"},
		Spec: machineSpec("1.36.3")}
	if err := w.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.Machine{}
	w.awaitRight("the Machine runs", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil {
			return err.Error()
		}
		if got.Status.Phase != v1alpha1.Running || got.Status.NodeRef == nil || got.Status.Versions == nil ||
			got.Status.Versions.Kubelet != "1.36.3" || got.Status.ErrorReason != nil {
			return fmt.Sprintf("%s, %s", got.Status.Phase, describeMachine(*got))
		}
		return ""
	})
	changeObject(w, &v1alpha1.Machine{}, "alone", func(m *v1alpha1.Machine) { m.Spec.Versions.Kubelet = "1.36.4" })
	w.awaitRight("the provider cannot change it", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil {
			return err.Error()
		}
		if got.Status.ErrorReason == nil || *got.Status.ErrorReason != v1alpha1.UnsupportedChange {
			return describeMachine(*got)
		}
		return ""
	})
	changeObject(w, &v1alpha1.Machine{}, "alone", func(m *v1alpha1.Machine) { m.Spec.Versions.Kubelet = "1.36.3" })
	w.awaitRight("the error is cleared when its cause is gone", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil {
			return err.Error()
		}
		if got.Status.ErrorReason != nil || got.Status.ErrorMessage != nil || got.Status.Phase != v1alpha1.Running {
			return describeMachine(*got)
		}
		return ""
	})
	for range 2 { // deletion is idempotent
		if err := w.Delete(t.Context(), m); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	w.awaitRight("Machine and Node are gone", func() string {
		node := &corev1.Node{}
		if err := w.Get(t.Context(), client.ObjectKey{Name: "alone"}, node); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Node is there: %v", err)
		}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Machine is there: %v", err)
		}
		return ""
	})
}

// unknownProvider: the controllers ignore a Machine of another program, also when it is deleted. An Event says so.
func unknownProvider(t *testing.T, w *world) {
	const other = "example.com/other-program"
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "elsewhere", Finalizers: []string{
			v1alpha1.MachineFinalizer, other,
		}},
		Spec: machineSpec("1.36.3"),
	}
	m.Spec.ProviderSpec.Value.CloudProvider = "hetzner"
	if err := w.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		var all eventsv1.EventList
		if err := w.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		for _, e := range all.Items {
			if e.Regarding.Name == m.Name && e.Reason == "OtherProvider" &&
				strings.Contains(e.Note, `kubeone does not support the provider "hetzner"; it supports fake`) {
				return ""
			}
		}
		return "no Event says it"
	}
	w.awaitRight("an Event says it", said)
	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.seenAll()
	got := &v1alpha1.Machine{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil ||
		!equality.Semantic.DeepEqual(got.Status, v1alpha1.MachineStatus{}) || len(got.Finalizers) != 2 {
		t.Errorf("it is not as it was made: %+v, %v", got, err)
	}
	changeObject(w, &v1alpha1.Machine{}, m.Name, func(m *v1alpha1.Machine) { m.Finalizers = nil })
	w.awaitRight("it is gone", func() string {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), got); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
}

func scaledDeployment(t *testing.T, w *world) {
	if err := w.Create(t.Context(), fakeDeployment("scaled", 3, "1.36.3")); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("scaled", 3, "1.36.3")
	var before map[string]v1alpha1.Machine
	for _, replicas := range []int32{5, 2} {
		before = w.machinesOf("scaled")
		changeObject(w, &v1alpha1.MachineDeployment{}, "scaled", func(md *v1alpha1.MachineDeployment) {
			md.Spec.Replicas = &replicas
		})
		w.awaitComplete("scaled", replicas, "1.36.3")
	}
	left := w.machinesOf("scaled")
	for name, stayed := range left {
		for other, was := range before {
			if _, stays := left[other]; !stays && was.CreationTimestamp.Before(&stayed.CreationTimestamp) {
				t.Errorf("%s went and %s, which is newer, stayed: the newest go first", other, name)
			}
		}
	}
	w.removeDeployment("scaled", metav1.DeletePropagationBackground)
}

// removeDeployment deletes a deployment and, like a garbage collector, its dependents.
func (w *world) removeDeployment(name string, how metav1.DeletionPropagation) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := w.Delete(w.t.Context(), md, client.PropagationPolicy(how)); err != nil {
		w.t.Fatal(err)
	}
	w.collectGarbage(name)
}

// collectGarbage deletes sets and Machines with the label until none is left. Controllers may create another one until
// they notice that its owner is deleted.
func (w *world) collectGarbage(name string) {
	w.t.Helper()
	inside, mine := client.InNamespace(namespace), client.MatchingLabels{"app": name}
	w.awaitRight(name+" is gone", func() string {
		for _, kind := range []client.Object{&v1alpha1.MachineSet{}, &v1alpha1.Machine{}} {
			if err := w.DeleteAllOf(w.t.Context(), kind, inside, mine); err != nil {
				w.t.Fatal(err)
			}
		}
		var sets v1alpha1.MachineSetList
		if err := w.List(w.t.Context(), &sets, inside, mine); err != nil {
			w.t.Fatal(err)
		}
		if left := w.machinesOf(name); len(left) > 0 || len(sets.Items) > 0 {
			return fmt.Sprintf("%d sets, Machines %s", len(sets.Items), slices.Sorted(maps.Keys(left)))
		}
		return ""
	})
}

// rolledOut checks maxSurge 1 and maxUnavailable 0 at every change of a Machine, with a watch.
func rolledOut(t *testing.T, w *world) {
	const replicas = 4
	md := fakeDeployment("rolled", replicas, "1.35.4")
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	md.Spec.Strategy = &v1alpha1.MachineDeploymentStrategy{
		RollingUpdate: &v1alpha1.MachineRollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &none},
	}
	if err := w.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("rolled", replicas, "1.35.4")
	ended := w.watchLimits("rolled", replicas, 1)
	for _, kubelet := range []string{"1.36.3", "1.35.4", "1.36.3"} {
		changeObject(w, &v1alpha1.MachineDeployment{}, "rolled", func(md *v1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.Versions.Kubelet = kubelet
		})
		for range 3 {
			w.stop()
			w.startControllers()
		}
		w.awaitComplete("rolled", replicas, kubelet)
	}
	if seen := ended(); seen < 3*replicas {
		t.Errorf("only %d changes were seen", seen)
	}
	changeObject(w, &v1alpha1.MachineDeployment{}, "rolled", func(md *v1alpha1.MachineDeployment) {
		md.Annotations = map[string]string{v1alpha1.RollbackAnnotation: "4"}
	})
	w.awaitRight("the wish for a revision that there is not is forgotten", func() string {
		md := &v1alpha1.MachineDeployment{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "rolled"}, md); err != nil {
			return err.Error()
		}
		return md.Annotations[v1alpha1.RollbackAnnotation]
	})
	w.removeDeployment("rolled", metav1.DeletePropagationForeground)
}

// watchLimits watches a deployment's Machines: never more than surge beyond the replicas, and never fewer ready ones
// than the replicas. The returned function ends the watch and returns the number of changes.
func (w *world) watchLimits(name string, replicas, surge int) func() int {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	is := w.machinesOf(name)
	events, err := w.Watch(ctx, &v1alpha1.MachineList{}, client.InNamespace(namespace),
		client.MatchingLabels{"app": name})
	if err != nil {
		w.t.Fatal(err)
	}
	seen, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			m, ok := e.Object.(*v1alpha1.Machine)
			if !ok {
				continue
			}
			seen++
			if is[m.Name] = *m; e.Type == "DELETED" {
				delete(is, m.Name)
			}
			ready := 0
			for _, m := range is {
				if m.DeletionTimestamp == nil && m.Status.Phase == v1alpha1.Running {
					ready++
				}
			}
			if len(is) > replicas+surge || ready < replicas {
				w.t.Errorf("at the change of %s there are %d Machines, %d of them ready", m.Name, len(is), ready)
			}
		}
	}()
	return func() int {
		cancel()
		events.Stop()
		<-done
		return seen
	}
}

func checkMetadata(t *testing.T, w *world) {
	md := fakeDeployment("labelled", 1, "1.36.3")
	md.Spec.Template.Spec.ObjectMeta = v1alpha1.ObjectMeta{
		Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{"note": "x"},
	}
	md.Spec.Template.Spec.Taints = []v1alpha1.Taint{{Key: "only", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	if err := w.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("labelled", 1, "1.36.3")
	var name string
	for name = range w.machinesOf("labelled") {
		break
	}
	node := &corev1.Node{}
	has := func(labels string, taints ...string) func() string {
		return func() string {
			if err := w.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
				return err.Error()
			}
			var keys []string
			for _, taint := range node.Spec.Taints {
				if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
					keys = append(keys, taint.Key)
				}
			}
			if got := node.Labels["pool"] + node.Labels["theirs"]; got != labels || !slices.Equal(keys, taints) {
				return fmt.Sprintf("labels %v, taints %v", node.Labels, keys)
			}
			return ""
		}
	}
	w.awaitRight("the Node has them", has("a", "only"))
	if node.Labels[desired.OwnerLabel] == "" || node.Annotations[v1alpha1.MachineAnnotation] != namespace+"/"+name {
		t.Errorf("labels %v, annotations %v", node.Labels, node.Annotations)
	}
	before := node.DeepCopy()
	node.Labels["theirs"] = "b"
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoSchedule})
	if err := w.Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	changeObject(w, &v1alpha1.MachineDeployment{}, "labelled", func(md *v1alpha1.MachineDeployment) {
		md.Spec.Template.Spec.ObjectMeta, md.Spec.Template.Spec.Taints = v1alpha1.ObjectMeta{}, nil
	})
	w.awaitRight("they are taken back, and others' stay", has("b", "theirs"))
	if after := w.machinesOf("labelled"); len(after) != 1 || after[name].Name != name {
		t.Errorf("for a label the Machines became %v", slices.Collect(maps.Keys(after)))
	}
	w.removeDeployment("labelled", metav1.DeletePropagationBackground)
}

func checkRemediation(t *testing.T, w *world) {
	md := fakeDeployment("healed", 5, "1.36.3")
	one, short := intstr.FromInt32(1), int32(1)
	md.Spec.HealthCheck = &v1alpha1.MachineHealthCheck{NotReadyTimeoutSeconds: &short, MaxUnhealthy: &one}
	if err := w.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("healed", 5, "1.36.3")
	broken := w.breakNodes("healed", 1)
	w.awaitRight("the broken one is replaced", func() string {
		if _, there := w.machinesOf("healed")[broken[0]]; there {
			return broken[0] + " is there"
		}
		return ""
	})
	w.awaitComplete("healed", 5, "1.36.3")
	// If one Machine is judged before the others have been silent for long enough, its replacement is correct.
	paused := func(yes bool) {
		changeObject(w, &v1alpha1.MachineDeployment{}, "healed", func(md *v1alpha1.MachineDeployment) {
			delete(md.Annotations, v1alpha1.PausedAnnotation)
			if yes {
				metav1.SetMetaDataAnnotation(&md.ObjectMeta, v1alpha1.PausedAnnotation, "")
			}
		})
	}
	paused(true)
	broken = w.breakNodes("healed", 3)
	w.awaitRight("they have been silent for long enough", func() string {
		of := w.machinesOf("healed")
		for _, name := range broken {
			ready := meta.FindStatusCondition(of[name].Status.Conditions, machine.ConditionReady)
			if ready == nil || ready.Status == metav1.ConditionTrue ||
				time.Since(ready.LastTransitionTime.Time) < 2*time.Second {
				return fmt.Sprintf("%s: %+v", name, ready)
			}
		}
		return ""
	})
	paused(false)
	w.awaitRight("the brake is named", func() string {
		md := &v1alpha1.MachineDeployment{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "healed"}, md); err != nil {
			return err.Error()
		}
		for _, c := range md.Status.Conditions {
			if c.Type == controllers.ConditionRemediationHeld && c.Status == metav1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprint(md.Status.Conditions)
	})
	of := w.machinesOf("healed")
	for _, name := range broken {
		if m, there := of[name]; !there || m.DeletionTimestamp != nil {
			t.Errorf("%s was deleted, although too many are broken", name)
		}
	}
	w.removeDeployment("healed", metav1.DeletePropagationBackground)
}

// breakNodes makes the Nodes of n Machines silent, and returns their names.
func (w *world) breakNodes(name string, n int) []string {
	w.t.Helper()
	of := w.machinesOf(name)
	names := slices.Sorted(maps.Keys(of))[:n]
	for _, name := range names {
		m := of[name]
		if err := w.fake.Break(w.t.Context(), &m); err != nil {
			w.t.Fatal(err)
		}
	}
	return names
}

func checkQuickScaling(t *testing.T, w *world) {
	if err := w.Create(t.Context(), fakeDeployment("quick", 0, "1.36.3")); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int32{30, 0, 30, 3} {
		changeObject(w, &v1alpha1.MachineDeployment{}, "quick", func(md *v1alpha1.MachineDeployment) {
			md.Spec.Replicas = &replicas
		})
	}
	w.awaitComplete("quick", 3, "1.36.3")
	w.removeDeployment("quick", metav1.DeletePropagationBackground)
	w.awaitRight("no machine and no Node is left", func() string {
		if n := w.fake.Count(); n > 0 {
			return fmt.Sprintf("%d machines", n)
		}
		var nodes corev1.NodeList
		if err := w.List(t.Context(), &nodes); err != nil || len(nodes.Items) > 0 {
			return fmt.Sprintf("%d Nodes, %v", len(nodes.Items), err)
		}
		return ""
	})
}

func setAlone(t *testing.T, w *world) {
	labels := map[string]string{"app": "alone-set"}
	orphan := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orphan",
			Labels: labels}, Spec: machineSpec("1.36.3"),
	}
	if err := w.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	two := int32(2)
	ms := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone-set"}}
	ms.Spec = v1alpha1.MachineSetSpec{Replicas: &two, Selector: metav1.LabelSelector{MatchLabels: labels}}
	ms.Spec.Template.ObjectMeta.Labels, ms.Spec.Template.Spec = labels, machineSpec("1.36.3")
	if err := w.Create(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	owned := func(n int, with string) func() string {
		return func() string {
			got := 0
			for _, m := range w.machinesOf("alone-set") {
				if metav1.IsControlledBy(&m, ms) && m.DeletionTimestamp == nil {
					got++
				}
			}
			m := &v1alpha1.Machine{}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(orphan), m); err != nil {
				return err.Error()
			}
			if is := fmt.Sprint(metav1.IsControlledBy(m, ms)); got != n || is != with {
				return fmt.Sprintf("it has %d, and the orphan: %s", got, is)
			}
			return ""
		}
	}
	w.awaitRight("the orphan is one of two", owned(2, "true"))
	changeObject(w, &v1alpha1.Machine{}, "orphan",
		func(m *v1alpha1.Machine) { m.Labels = map[string]string{"app": "other"} })
	w.awaitRight("what is not selected is let go, and replaced", owned(2, "false"))
	for _, m := range []*v1alpha1.Machine{orphan} {
		if err := w.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Delete(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	w.collectGarbage("alone-set")
}

// checkIdle compares the versions of all objects before and after a reconciliation of everything.
func checkIdle(t *testing.T, w *world) {
	if err := w.Create(t.Context(), fakeDeployment("idle", 3, "1.36.3")); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("idle", 3, "1.36.3")
	before := w.objectVersions()
	w.stop()
	w.startControllers() // reconciles every object
	if err := w.Create(t.Context(), fakeDeployment("later", 1, "1.36.3")); err != nil {
		t.Fatal(err)
	}
	w.awaitComplete("later", 1, "1.36.3")
	after := w.objectVersions()
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written", name)
		}
	}
	w.removeDeployment("idle", metav1.DeletePropagationBackground)
	w.removeDeployment("later", metav1.DeletePropagationBackground)
}

// objectVersions returns the resource versions of all objects.
func (w *world) objectVersions() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.MachineDeploymentList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineList{}, &corev1.NodeList{},
	} {
		if err := w.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		switch l := list.(type) {
		case *v1alpha1.MachineDeploymentList:
			for _, o := range l.Items {
				out["MachineDeployment "+o.Name] = o.ResourceVersion
			}
		case *v1alpha1.MachineSetList:
			for _, o := range l.Items {
				out["MachineSet "+o.Name] = o.ResourceVersion
			}
		case *v1alpha1.MachineList:
			for _, o := range l.Items {
				out["Machine "+o.Name] = o.ResourceVersion
			}
		case *corev1.NodeList:
			for _, o := range l.Items {
				out["Node "+o.Name] = o.ResourceVersion
			}
		}
	}
	return out
}
