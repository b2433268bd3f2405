package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/addons"
)

func TestWhenARolloutIsDone(t *testing.T) {
	t.Parallel()
	two := int32(2)
	daemonSet := func(s appsv1.DaemonSetStatus) func() (bool, string, error) {
		return func() (bool, string, error) {
			return daemonSetDone(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: s})
		}
	}
	deployment := func(s appsv1.DeploymentStatus, check func(*appsv1.Deployment) (bool, string, error)) func() (bool, string, error) {
		return func() (bool, string, error) {
			return check(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &two}, Status: s})
		}
	}
	available := func(status corev1.ConditionStatus) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "True"}, {Type: appsv1.DeploymentAvailable, Status: status, Reason: "Minimum"}}
	}
	for name, c := range map[string]struct {
		check func() (bool, string, error)
		done  bool
		state string
	}{
		"DaemonSet complete":     {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 4, UpdatedNumberScheduled: 4, NumberAvailable: 4}), true, "4 of 4"},
		"DaemonSet unseen":       {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 4, UpdatedNumberScheduled: 4, NumberAvailable: 4}), false, "not seen"},
		"DaemonSet old pods":     {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 4, UpdatedNumberScheduled: 3, NumberAvailable: 4}), false, "3 of 4"},
		"DaemonSet starting":     {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 4, UpdatedNumberScheduled: 4, NumberAvailable: 1}), false, "1 available"},
		"Deployment complete":    {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, deploymentDone), true, ""},
		"Deployment old pods":    {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 2}, deploymentDone), false, "3 in all"},
		"Deployment unseen":      {deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, deploymentDone), false, "not seen"},
		"Deployment available":   {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Conditions: available("True")}, deploymentAvailable), true, ""},
		"Deployment unavailable": {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Conditions: available("False")}, deploymentAvailable), false, "Minimum"},
		"Deployment new":         {deployment(appsv1.DeploymentStatus{ObservedGeneration: 3}, deploymentAvailable), false, "no condition"},
	} {
		done, state, err := c.check()
		if err != nil || done != c.done || !strings.Contains(state, c.state) {
			t.Errorf("%s: got %v, %q, %v; want %v with %q", name, done, state, err, c.done, c.state)
		}
	}
}

func TestWaitRolloutReturnsWithTheEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: "sys", Generation: 1}}
		c, _ := faked(t, set)
		result := make(chan error)
		go func() {
			result <- c.WaitRollout(t.Context(), addons.Workload{Kind: "DaemonSet", Namespace: "sys", Name: "net"})
		}()
		synctest.Wait()
		changed := time.Now()
		done := set.DeepCopy()
		done.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberAvailable: 1}
		if _, err := c.Kubernetes.AppsV1().DaemonSets("sys").UpdateStatus(t.Context(), done, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil || time.Since(changed) > 0 {
			t.Errorf("got %v after %s", err, time.Since(changed))
		}
		if err := c.WaitRollout(t.Context(), addons.Workload{Kind: "Job"}); Classify(err) != Terminal {
			t.Errorf("a Job: got %v, want a terminal error", err)
		}
	})
}
