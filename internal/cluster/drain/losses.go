package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
)

// DrainWarnings says, one sentence a matter, what a drain of the nodes would lose, and which budgets would never let it
// end. What was found out is returned with an error too.
func (c Drainer) DrainWarnings(ctx context.Context, nodes []string) ([]string, error) {
	pods, err := c.doomedPods(ctx, nodes)
	stuck, err2 := c.stuckBudgets(ctx)
	return slices.Concat(pods, stuck), errors.Join(err, err2)
}

// doomedPods are those that a drain of the nodes ends for good, and those whose local data it loses.
func (c Drainer) doomedPods(ctx context.Context, nodes []string) ([]string, error) {
	var pods *corev1.PodList
	err := apicall.Retry(ctx, "list pods", "", func(ctx context.Context) (err error) {
		pods, err = c.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	})
	if err != nil {
		return nil, err
	}
	var bare, local []string
	for _, p := range pods.Items {
		owner := metav1.GetControllerOf(&p)
		switch {
		case !slices.Contains(nodes, p.Spec.NodeName), p.Status.Phase == corev1.PodSucceeded,
			p.Status.Phase == corev1.PodFailed:
		case p.Annotations[corev1.MirrorPodAnnotationKey] != "", owner != nil && owner.Kind == "DaemonSet":
		case owner == nil:
			bare = append(bare, p.Namespace+"/"+p.Name)
		case hasLocalData(&p):
			local = append(local, p.Namespace+"/"+p.Name)
		}
	}
	var out []string
	if len(bare) > 0 {
		out = append(out, "pods without a controller will be gone after the drain: "+apicall.Names(bare))
	}
	if len(local) > 0 {
		out = append(out, "pods lose the content of their emptyDir volumes when they move: "+apicall.Names(local))
	}
	return out, nil
}

func hasLocalData(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
	})
}

func (c Drainer) stuckBudgets(ctx context.Context) ([]string, error) {
	var out []string
	for _, b := range c.budgets(ctx) {
		if NeverAllows(&b) {
			out = append(out, fmt.Sprintf("%s: %s; a drain will stop there", b.Namespace, neverReason(&b)))
		}
	}
	return out, ctx.Err()
}
