package drain

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/model/observed"
)

func TestOnlyOurOwnCordonIsOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*corev1.Node)
		open   bool // after cordon and uncordon
	}{
		"open before":        {nil, true},
		"closed by a person": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"closed by an earlier run": {
			func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Annotations[observed.CordonAnnotation] = "run-0" },
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2, api := faked(t, node(c.before))
			if err := c2.Cordon(t.Context(), "cp-1", "run-1"); err != nil || !cordoned(t, c2) {
				t.Fatalf("%v, cordoned %v", err, cordoned(t, c2))
			}
			if err := c2.Uncordon(t.Context(), "cp-1"); err != nil || cordoned(t, c2) == c.open {
				t.Errorf("%v, cordoned %v", err, cordoned(t, c2))
			}
			n, err := api.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
			if err != nil || n.Annotations["other"] != "kept" ||
				c.open && n.Annotations[observed.CordonAnnotation] != "" {
				t.Errorf("%v, %v", err, n.Annotations)
			}
		})
	}
}

func TestABudgetThatNeverAllowsAnEvictionEndsADrainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil), pod("db", "ReplicaSet"), budget(2))
		evicting(api, func(string) bool { return false })
		began := time.Now()
		err := c.Drain(t.Context(), "cp-1", Options{Mark: "run-1"})
		var blocked *BlockedError
		if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "requires 2 of 2 pods") || cordoned(t, c) {
			t.Errorf("got %v, cordoned %v", err, cordoned(t, c))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
	ill, used := budget(1), budget(3)
	used.Status.ExpectedPods, used.Status.DisruptedPods = 3, map[string]metav1.Time{"db-2": {}}
	unseen := budget(2)
	unseen.Generation = 2
	for why, b := range map[string]*policyv1.PodDisruptionBudget{
		"one of its pods is ill": ill,
		"another drain uses it":  used,
		"it was just changed":    unseen,
	} {
		synctest.Test(t, func(t *testing.T) { // waiting may help
			c, api := faked(t, node(nil), pod("db", "ReplicaSet"), b)
			later := time.Now().Add(time.Minute)
			evicting(api, func(string) bool { return time.Now().After(later) })
			if err := c.Drain(t.Context(), "cp-1", Options{}); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		})
	}
}

func TestAMarkOnAnOpenNodeIsTakenOff(t *testing.T) {
	t.Parallel()
	c, api := faked(t, node(func(n *corev1.Node) { n.Annotations[observed.CordonAnnotation] = "run-0" }))
	if err := c.Uncordon(t.Context(), "cp-1"); err != nil || cordoned(t, c) {
		t.Errorf("%v, cordoned %v", err, cordoned(t, c))
	}
	n, err := api.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
	if err != nil || n.Annotations["other"] != "kept" || n.Annotations[observed.CordonAnnotation] != "" {
		t.Errorf("%v, %v", err, n.Annotations)
	}
}

// budget returns a budget that requires two of two pods. Healthy is the number of healthy ones.
func budget(healthy int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "strict", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, DesiredHealthy: 2, CurrentHealthy: healthy},
	}
}

// reporting returns a node with that Ready condition.
func reporting(ready corev1.ConditionStatus) *corev1.Node {
	return node(func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	})
}

func TestPodsThatNobodyEndsAreNotWaitedForOnASilentNode(t *testing.T) {
	t.Parallel()
	for ready, drained := range map[corev1.ConditionStatus]bool{
		corev1.ConditionUnknown: true,
		corev1.ConditionTrue:    false,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, api := faked(t, reporting(ready), pod("db", "ReplicaSet"))
			evicting(api, func(string) bool { return true })
			api.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				dying := pod("db", "ReplicaSet") // forever: no kubelet ends it
				dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now().Add(30 * time.Second)},
					[]string{"kept/by"}
				return true, nil, api.Tracker().Update(action.GetResource(), dying, "default")
			})
			began := time.Now()
			err := c.Drain(t.Context(), "cp-1", Options{Mark: "run-1"})
			var blocked *BlockedError
			if drained != (err == nil) || !drained && !errors.As(err, &blocked) {
				t.Errorf("Ready %s: got %v", ready, err)
			}
			if took := time.Since(began); drained && took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestANodeOnWhichForceDoesNotHelpIsBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, reporting(corev1.ConditionTrue), pod("db", "ReplicaSet"))
		evicting(api, func(string) bool { return false })
		api.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, nil
		})
		err := c.Drain(t.Context(), "cp-1", Options{Force: true, Timeout: time.Minute})
		var blocked *BlockedError
		if !errors.As(err, &blocked) || len(blocked.Pods) != 1 {
			t.Errorf("got %v", err)
		}
	})
}

func TestPodsThatDoNotLeaveAreDeletedByForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil), pod("db", "ReplicaSet"))
		evicting(api, func(string) bool { return false })
		if err := c.Drain(t.Context(), "cp-1", Options{Force: true, Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		left, err := api.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 0 {
			t.Errorf("%v, %d pods are left", err, len(left.Items))
		}
	})
}
