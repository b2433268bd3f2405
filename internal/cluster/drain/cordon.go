package drain

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/observed"
)

// Cordon keeps new pods from a node. With a mark, the node gets it as an annotation in the same write, so that Uncordon
// knows a cordon of ours; a node that somebody else has cordoned is left as it is.
func (c Drainer) Cordon(ctx context.Context, node, mark string) error {
	return c.patchNode(ctx, "cordon node", node, func(n *corev1.Node) map[string]any {
		if n.Spec.Unschedulable {
			return nil
		}
		change := map[string]any{"spec": map[string]any{"unschedulable": true}}
		if mark != "" {
			change["metadata"] = map[string]any{"annotations": map[string]any{observed.CordonAnnotation: mark}}
		}
		return change
	})
}

// Uncordon lets pods onto a node again that a run of ours has cordoned. Any other stays as it is.
func (c Drainer) Uncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon node", node, func(n *corev1.Node) map[string]any {
		if n.Annotations[observed.CordonAnnotation] == "" {
			return nil
		}
		return opened()
	})
}

func opened() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{observed.CordonAnnotation: nil}},
		"spec":     map[string]any{"unschedulable": nil},
	}
}

// patchNode changes a node as it is now; nil from change changes nothing. Somebody who writes at the same time makes it
// begin again.
func (c Drainer) patchNode(ctx context.Context, op, node string, change func(*corev1.Node) map[string]any) error {
	return apicall.Retry(ctx, op, node, func(ctx context.Context) error {
		have, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		patch := change(have)
		if patch == nil {
			return nil
		}
		meta, ok := patch["metadata"].(map[string]any)
		if !ok {
			meta = map[string]any{}
			patch["metadata"] = meta
		}
		meta["resourceVersion"] = have.ResourceVersion
		text, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = c.Kubernetes.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, text,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		return err
	})
}
