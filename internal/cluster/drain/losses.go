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

// Losses contains what would be lost if nodes of the cluster were drained.
type Losses struct {
	bare, local map[string][]string // pods without a controller and pods with local data, by node
	stuck       []string            // one sentence for each budget that never allows an eviction
}

// Notes describes what a drain of these nodes would lose, and which budgets would block it, in one sentence each.
func (l Losses) Notes(nodes []string) []string {
	var bare, local []string
	for _, n := range nodes {
		bare, local = append(bare, l.bare[n]...), append(local, l.local[n]...)
	}
	slices.Sort(bare)
	slices.Sort(local)
	var out []string
	if len(bare) > 0 {
		out = append(out, "the drain permanently deletes pods without a controller: "+apicall.JoinNames(bare))
	}
	if len(local) > 0 {
		out = append(out, "evicted pods lose the contents of their emptyDir volumes: "+apicall.JoinNames(local))
	}
	return append(out, l.stuck...)
}

// DrainLosses returns what drains of all nodes would lose. If it returns an error, the results are partial.
func (c Drainer) DrainLosses(ctx context.Context) (Losses, error) {
	losses, err := c.podsAtRisk(ctx)
	var err2 error
	losses.stuck, err2 = c.stuckBudgets(ctx)
	return losses, errors.Join(err, err2)
}

// podsAtRisk returns the pods that a drain deletes permanently, and those that lose local data.
func (c Drainer) podsAtRisk(ctx context.Context) (Losses, error) {
	var pods *corev1.PodList
	err := apicall.Retry(ctx, "list pods", "", func(ctx context.Context) (err error) {
		pods, err = c.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	})
	if err != nil {
		return Losses{}, err
	}
	out := Losses{bare: map[string][]string{}, local: map[string][]string{}}
	for _, p := range pods.Items {
		owner, node := metav1.GetControllerOf(&p), p.Spec.NodeName
		switch {
		case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		case p.Annotations[corev1.MirrorPodAnnotationKey] != "", owner != nil && owner.Kind == "DaemonSet":
		case owner == nil:
			out.bare[node] = append(out.bare[node], p.Namespace+"/"+p.Name)
		case hasLocalData(&p):
			out.local[node] = append(out.local[node], p.Namespace+"/"+p.Name)
		}
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
	for _, b := range c.listBudgets(ctx) {
		if NeverAllows(&b) {
			out = append(out, fmt.Sprintf("%s: %s; a drain will stop there", b.Namespace, neverAllowsReason(&b)))
		}
	}
	return out, ctx.Err()
}
