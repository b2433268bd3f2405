package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machine"
	"kubeone/internal/provider"
)

// Only what its Node is known not to run makes a Machine one that is being updated: a look at a host that is silent
// does not, or nobody would replace it.
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
		if got := differs(m); got != c.differs {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAChangeLastsUntilItsWorkHasEnded(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{}
	working, silent := &provider.Waiting{Reason: provider.Working}, &provider.Waiting{Reason: "Waiting"}
	if underWay(m, working) {
		t.Error("a look at a host that is as it was is a change")
	}
	set(m, machine.ConditionUpdating, metav1.ConditionTrue, "Updating", "")
	if !underWay(m, working) || underWay(m, silent) || underWay(m, nil) {
		t.Error("a change lasts for as long as somebody works at it")
	}
}

func TestOnlyWhatAMachineHasGivenIsTakenBack(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{}
	m.Spec.ObjectMeta.Labels = map[string]string{"ours": "a"}
	m.Spec.Taints = []corev1.Taint{{Key: "ours", Effect: corev1.TaintEffectNoSchedule}}
	n := &corev1.Node{}
	n.Labels = map[string]string{"theirs": "b"}
	n.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoExecute}}
	applyMetadata(m, n, given{})
	before := givenNow(m)
	if n.Labels["ours"] != "a" || len(n.Spec.Taints) != 2 {
		t.Fatalf("labels %v, taints %v", n.Labels, n.Spec.Taints)
	}
	m.Spec.ObjectMeta.Labels, m.Spec.Taints = nil, nil
	n.Annotations[GivenAnnotation] = `{"taints":["theirs:NoExecute"],"labels":["theirs"]}` // a kubelet may write that
	applyMetadata(m, n, before)
	if _, there := n.Labels["ours"]; there || n.Labels["theirs"] != "b" || len(n.Spec.Taints) != 1 ||
		n.Spec.Taints[0].Key != "theirs" {
		t.Errorf("labels %v, taints %v", n.Labels, n.Spec.Taints)
	}
}
