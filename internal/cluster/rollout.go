package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/internal/resources"
)

// WaitRollout waits until every pod of a DaemonSet or Deployment is of the latest generation and available, on all
// hosts that it is for. Of a DaemonSet, the pods of Nodes that are not Ready are not waited for; these Nodes are returned.
func (c *Client) WaitRollout(ctx context.Context, w resources.Workload) (excused []string, err error) {
	op := "wait for " + w.Kind
	switch w.Kind {
	case "DaemonSet":
		return c.waitDaemonSet(ctx, w)
	case "Deployment":
		return nil, awaitOne(ctx, c.Kubernetes.AppsV1().Deployments(w.Namespace), op, w.Name, deploymentDone)
	}
	return nil, fail(op, w.Name, fmt.Errorf("the roll-out of a %s cannot be awaited", w.Kind))
}

// WaitDeploymentAvailable waits until a Deployment has its minimum of available pods (condition Available), which is
// less than WaitRollout asks for.
func (c *Client) WaitDeploymentAvailable(ctx context.Context, namespace, name string) error {
	return awaitOne(ctx, c.Kubernetes.AppsV1().Deployments(namespace), "wait for Deployment", name, deploymentAvailable)
}

func daemonSetDone(d *appsv1.DaemonSet) (bool, string, error) {
	s := d.Status
	state := fmt.Sprintf("%d of %d pods updated, %d available", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable)
	if s.ObservedGeneration < d.Generation {
		return false, "its controller has not seen the change", nil
	}
	return s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled, state, nil
}

func deploymentDone(d *appsv1.Deployment) (bool, string, error) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	state := fmt.Sprintf("%d of %d replicas updated, %d available, %d in all", s.UpdatedReplicas, want, s.AvailableReplicas, s.Replicas)
	if s.ObservedGeneration < d.Generation {
		return false, "its controller has not seen the change", nil
	}
	return s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= want, state, nil
}

func deploymentAvailable(d *appsv1.Deployment) (bool, string, error) {
	if d.Status.ObservedGeneration < d.Generation {
		return false, "its controller has not seen the change", nil
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue, condition.Reason + ": " + condition.Message, nil
		}
	}
	return false, "it has no condition Available", nil
}

// waitEstablished waits until the API serves the kind of a CRD.
func (c *Client) waitEstablished(ctx context.Context, name string) error {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	err := awaitOne(ctx, c.Dynamic.Resource(crds), "wait for CustomResourceDefinition", name, established)
	c.kinds.Reset()
	return err
}

func established(crd *unstructured.Unstructured) (bool, string, error) {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return false, "", err
	}
	for _, one := range conditions {
		condition, ok := one.(map[string]any)
		if ok && condition["type"] == "Established" {
			return condition["status"] == "True", fmt.Sprint(condition["message"]), nil
		}
	}
	return false, "it is not established", nil
}
