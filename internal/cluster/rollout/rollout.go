// Package rollout waits for workload rollouts and for the leaders of control-plane components.
package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
)

// Waiter waits for workloads and leaders.
type Waiter struct {
	Kubernetes kubernetes.Interface
}

// WaitRollout waits until all pods of a DaemonSet, Deployment or StatefulSet have the latest template and are
// available. It does not wait for DaemonSet pods on Nodes that are not Ready, and returns the names of these Nodes.
func (c Waiter) WaitRollout(ctx context.Context, w resources.Workload) (excused []string, err error) {
	op := "wait for " + w.Kind
	switch w.Kind {
	case "DaemonSet":
		return c.waitDaemonSet(ctx, w)
	case "Deployment":
		return nil, apicall.Await(ctx, c.Kubernetes.AppsV1().Deployments(w.Namespace), op, w.Name, deploymentDone)
	case "StatefulSet":
		return nil, apicall.Await(ctx, c.Kubernetes.AppsV1().StatefulSets(w.Namespace), op, w.Name, statefulSetDone)
	}
	return nil, apicall.Wrap(op, w.Name, fmt.Errorf("waiting for a rollout of a %s is not supported", w.Kind))
}

func statefulSetDone(d *appsv1.StatefulSet) (bool, string, error) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	state := fmt.Sprintf("%d of %d replicas updated, %d available", s.UpdatedReplicas, want, s.AvailableReplicas)
	if s.ObservedGeneration < d.Generation {
		return false, "its controller has not observed the change", nil
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return s.AvailableReplicas >= want, state, nil
	}
	return s.UpdatedReplicas >= want && s.AvailableReplicas >= want, state, nil
}

// WaitDeploymentAvailable waits until a Deployment has the condition Available, which means that the minimum number of
// pods is available. This is weaker than WaitRollout.
func (c Waiter) WaitDeploymentAvailable(ctx context.Context, namespace, name string) error {
	return apicall.Await(ctx, c.Kubernetes.AppsV1().Deployments(namespace), "wait for Deployment", name,
		deploymentAvailable)
}

func daemonSetDone(d *appsv1.DaemonSet) (bool, string, error) {
	s := d.Status
	state := fmt.Sprintf("%d of %d pods updated, %d available", s.UpdatedNumberScheduled, s.DesiredNumberScheduled,
		s.NumberAvailable)
	if s.ObservedGeneration < d.Generation {
		return false, "its controller has not observed the change", nil
	}
	return s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled, state,
		nil
}

func deploymentDone(d *appsv1.Deployment) (bool, string, error) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	state := fmt.Sprintf("%d of %d replicas updated, %d available, %d in all", s.UpdatedReplicas, want,
		s.AvailableReplicas, s.Replicas)
	if s.ObservedGeneration < d.Generation {
		return false, "its controller has not observed the change", nil
	}
	return s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= want, state, nil
}

func deploymentAvailable(d *appsv1.Deployment) (bool, string, error) {
	if d.Status.ObservedGeneration < d.Generation {
		return false, "its controller has not observed the change", nil
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue, condition.Reason + ": " + condition.Message, nil
		}
	}
	return false, "the condition Available is missing", nil
}
