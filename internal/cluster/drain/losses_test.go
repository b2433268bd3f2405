package drain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhatADrainLoses(t *testing.T) {
	t.Parallel()
	with := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		change(p)
		return p
	}
	scratch := func(medium corev1.StorageMedium) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}},
			}
		}
	}
	c, _ := faked(t,
		pod("bare", ""), pod("web", "ReplicaSet"), with(pod("cache", "ReplicaSet"), scratch("")),
		with(pod("ram", "ReplicaSet"), scratch(corev1.StorageMediumMemory)),
		with(pod("agent", "DaemonSet"), scratch("")),
		with(pod("static", ""), func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}),
		with(pod("over", ""), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		with(pod("elsewhere", ""), func(p *corev1.Pod) { p.Spec.NodeName = "cp-2" }),
		budget(2),
	)
	losses, err := c.DrainLosses(t.Context())
	got := losses.Notes([]string{"cp-1"})
	want := []string{
		"the drain permanently deletes pods without a controller: default/bare",
		"evicted pods lose the contents of their emptyDir volumes: default/cache",
		"default: PodDisruptionBudget strict requires 2 of 2 pods, so it never allows a disruption; a " +
			"drain will stop there",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
}
