package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/observed"
)

// Cordon keeps new pods from a node. With a mark, the node gets it as an annotation in the same write, so that Reopen
// knows a cordon of ours; a node that somebody else has cordoned is left as it is.
func (c *Client) Cordon(ctx context.Context, node, mark string) error {
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

// Reopen lets pods onto a node again that a run of ours has cordoned. Any other stays as it is.
func (c *Client) Reopen(ctx context.Context, node string) error {
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
func (c *Client) patchNode(ctx context.Context, op, node string, change func(*corev1.Node) map[string]any) error {
	return retry(ctx, op, node, func(ctx context.Context) error {
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
		_, err = c.Kubernetes.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, text, metav1.PatchOptions{FieldManager: FieldManager})
		return err
	})
}

// WaitNodeVersion waits until a node's kubelet reports that version (without v) and is ready.
func (c *Client) WaitNodeVersion(ctx context.Context, node, version string) error {
	err := awaitOne(ctx, c.Kubernetes.CoreV1().Nodes(), "wait for node", node, func(n *corev1.Node) (bool, string, error) {
		if have := strings.TrimPrefix(n.Status.NodeInfo.KubeletVersion, "v"); have != version {
			return false, fmt.Sprintf("its kubelet reports version %s, want %s", have, version), nil
		}
		return nodeReady(n)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; the node stays closed, no other host is touched. See journalctl -u kubelet there, then apply again", err)
	}
	return err
}
