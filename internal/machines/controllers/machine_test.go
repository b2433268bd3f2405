package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/desired"
)

// A Machine is updating only if its Node is known to differ from the spec. A silent host does not count, or its Machine
// would never be replaced.
func TestWhatMakesAMachineOneThatIsUpdated(t *testing.T) {
	t.Parallel()
	runs := func(kubelet, containerd string) *v1alpha1.MachineVersionInfo {
		return &v1alpha1.MachineVersionInfo{
			Kubelet:          kubelet,
			ContainerRuntime: &v1alpha1.ContainerRuntimeInfo{Name: "containerd", Version: containerd},
		}
	}
	for name, c := range map[string]struct {
		is      *v1alpha1.MachineVersionInfo
		want    v1alpha1.MachineVersionInfo
		differs bool
	}{
		"nothing is known":          {nil, *runs("1.36.3", ""), true},
		"the same, with a v":        {runs("1.36.3", "2.1.4"), *runs("v1.36.3", "v2.1.4"), false},
		"another kubelet":           {runs("1.36.1", "2.1.4"), *runs("1.36.3", ""), true},
		"another container runtime": {runs("1.36.3", "2.1.4"), *runs("1.36.3", "2.2.0"), true},
		"any container runtime":     {runs("1.36.3", "2.1.4"), v1alpha1.MachineVersionInfo{Kubelet: "1.36.3"}, false},
	} {
		m := &v1alpha1.Machine{}
		m.Spec.Versions, m.Status.Versions = c.want, c.is
		if got := nodeDiffers(m); got != c.differs {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAChangeLastsUntilItsWorkHasEnded(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{}
	working, silent := &provider.Waiting{Reason: provider.Working}, &provider.Waiting{Reason: "Waiting"}
	if isFinishingUpdate(m, working) {
		t.Error("a look at a host that is as it was is a change")
	}
	setCondition(m, machine.ConditionUpdating, metav1.ConditionTrue, "Updating", "")
	if !isFinishingUpdate(m, working) || isFinishingUpdate(m, silent) || isFinishingUpdate(m, nil) {
		t.Error("a change lasts for as long as somebody works at it")
	}
}

func TestOnlyWhatAMachineHasGivenIsTakenBack(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{}
	m.Spec.ObjectMeta.Labels = map[string]string{"ours": "a"}
	m.Spec.Taints = []v1alpha1.Taint{{Key: "ours", Effect: corev1.TaintEffectNoSchedule}}
	n := &corev1.Node{}
	n.Labels = map[string]string{"theirs": "b"}
	n.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoExecute}}
	applyMetadata(m, n, appliedKeys{})
	before := desiredKeys(m)
	if n.Labels["ours"] != "a" || len(n.Spec.Taints) != 2 {
		t.Fatalf("labels %v, taints %v", n.Labels, n.Spec.Taints)
	}
	m.Spec.ObjectMeta.Labels, m.Spec.Taints = nil, nil
	// a kubelet can write this
	n.Annotations[AppliedKeysAnnotation] = `{"taints":["theirs:NoExecute"],"labels":["theirs"]}`
	applyMetadata(m, n, before)
	if _, there := n.Labels["ours"]; there || n.Labels["theirs"] != "b" || len(n.Spec.Taints) != 1 ||
		n.Spec.Taints[0].Key != "theirs" {
		t.Errorf("labels %v, taints %v", n.Labels, n.Spec.Taints)
	}
}

// A key that an older schema accepted is refused by name, and the Machine is not reconciled further. Its Node keeps its
// owner.
func TestWhatNoMachineMayGiveIsRefused(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(*v1alpha1.Machine){
		"node-role.kubernetes.io/control-plane": func(m *v1alpha1.Machine) {
			m.Spec.ObjectMeta.Labels = map[string]string{"node-role.kubernetes.io/control-plane": "", "pool": "a"}
		},
		"machine-controller/owned-by": func(m *v1alpha1.Machine) {
			m.Spec.ObjectMeta.Labels = map[string]string{"machine-controller/owned-by": "another", "pool": "a"}
		},
		"kubeone.k8c.io/cordoned-by": func(m *v1alpha1.Machine) {
			m.Spec.ObjectMeta.Annotations = map[string]string{"kubeone.k8c.io/cordoned-by": "x"}
		},
		"b c": func(m *v1alpha1.Machine) { m.Spec.ObjectMeta.Labels = map[string]string{"pool": "b c"} },
		"node.kubernetes.io/not-ready": func(m *v1alpha1.Machine) {
			m.Spec.Taints = []v1alpha1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}}
		},
	} {
		o := begun(t)
		o.p.joined = true
		o.join(o.machine())
		o.look()
		m := o.machine()
		wrong(m)
		if err := o.c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		o.p.changes = true
		result, err := o.controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: o.key})
		if m = o.machine(); err != nil || result.RequeueAfter != 0 || m.Status.ErrorReason == nil ||
			*m.Status.ErrorReason != v1alpha1.InvalidConfiguration || !strings.Contains(*m.Status.ErrorMessage, name) {
			t.Errorf("%s: %+v, %v, %+v", name, result, err, m.Status)
		}
		n := &corev1.Node{}
		if err := o.c.Get(t.Context(), client.ObjectKey{Name: "w-1"}, n); err != nil ||
			n.Labels[desired.OwnerLabel] != "uid" || len(n.Labels) != 1 || len(n.Spec.Taints) > 0 {
			t.Errorf("%s: its Node has labels %v, taints %v: %v", name, n.Labels, n.Spec.Taints, err)
		}
		m.Spec.ObjectMeta, m.Spec.Taints = v1alpha1.ObjectMeta{}, nil
		if err := o.c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		o.p.changes = false
		if o.look(); o.machine().Status.ErrorReason != nil {
			t.Errorf("%s: it is corrected, and still an error: %s", name, *o.machine().Status.ErrorMessage)
		}
	}
}

func TestAMachineNeverTakesItsOwnersLabelBack(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{}
	m.Annotations = map[string]string{AppliedKeysAnnotation: `{"labels":["machine-controller/owned-by","ours"]}`}
	n := &corev1.Node{}
	n.Labels = map[string]string{desired.OwnerLabel: "uid", "ours": "a"}
	if applyMetadata(m, n, readAppliedKeys(m)); n.Labels[desired.OwnerLabel] != "uid" || n.Labels["ours"] != "" {
		t.Errorf("labels %v", n.Labels)
	}
}

func TestANodeThatIsNotReadyAnyMoreIsTold(t *testing.T) {
	t.Parallel()
	with := func(status metav1.ConditionStatus, reason string) *v1alpha1.Machine {
		m := &v1alpha1.Machine{}
		m.Status.NodeRef = &corev1.ObjectReference{Name: "w-1"}
		setCondition(m, machine.ConditionReady, status, reason, "the kubelet says so")
		return m
	}
	ready := with(metav1.ConditionTrue, reasonNodeReady)
	for name, test := range map[string]struct {
		before, after *v1alpha1.Machine
		want          string
	}{
		"nothing happened": {ready, ready, ""},
		"the kubelet died": {
			ready, with(metav1.ConditionUnknown, reasonNodeSilent), "Warning NodeSilent the kubelet says so",
		},
		"the Node is gone": {ready, with(metav1.ConditionFalse, reasonNoNode), "Warning NoNode the kubelet says so"},
		"still not ready": {
			with(metav1.ConditionFalse, reasonNodeNotReady), with(metav1.ConditionUnknown, reasonNodeSilent), "",
		},
		"it is ready again": {
			with(metav1.ConditionUnknown, reasonNodeSilent), ready, "Normal NodeReady the kubelet says so",
		},
		"it has no Node yet": {&v1alpha1.Machine{}, with(metav1.ConditionFalse, reasonNodeNotReady), ""},
	} {
		recorder := events.NewFakeRecorder(2)
		(&Machines{Events: recorder}).reportReadiness(test.before, test.after)
		if said := eventOf(recorder); said != test.want {
			t.Errorf("%s: the Event is %q, want %q", name, said, test.want)
		}
	}
}
