package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/model/observed"
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

// cordonInTurn cordons the node, unless runs have as many workers cordoned as there may be: that is a *FullError, of
// class Transient. Another run may do the same at the same moment, so it is looked again afterwards; of two that
// were at it, both give way, and try again. A node that is cordoned already stays so: it is out of service anyway.
func (c Drainer) cordonInTurn(ctx context.Context, node string, opts Options) error {
	if opts.MaxUnavailable == 0 {
		return c.Cordon(ctx, node, opts.Mark)
	}
	out, err := c.outOfService(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(out, node):
		return c.Cordon(ctx, node, opts.Mark)
	case len(out) >= opts.MaxUnavailable:
		return fullError(node, out, opts)
	}
	if err := c.Cordon(ctx, node, opts.Mark); err != nil {
		return err
	}
	out, err = c.outOfService(ctx)
	if err == nil && len(out) > opts.MaxUnavailable {
		err = fullError(node, slices.DeleteFunc(out, func(name string) bool { return name == node }), opts)
	}
	if err != nil {
		return errors.Join(err, c.Uncordon(ctx, node))
	}
	return nil
}

// outOfService are the workers that runs of ours have cordoned, sorted.
func (c Drainer) outOfService(ctx context.Context) ([]string, error) {
	var out []string
	err := apicall.Retry(ctx, "list the nodes", "", func(ctx context.Context) error {
		out = nil
		workers := metav1.ListOptions{LabelSelector: "!" + nodes.ControlPlaneLabel}
		all, err := c.Kubernetes.CoreV1().Nodes().List(ctx, workers)
		if err != nil {
			return err
		}
		for _, n := range all.Items {
			if n.Spec.Unschedulable && n.Annotations[observed.CordonAnnotation] != "" {
				out = append(out, n.Name)
			}
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// FullError says that runs have as many workers out of service as there may be.
type FullError struct {
	Others []string // names of Nodes, sorted
	Most   int
}

// Error names them.
func (e *FullError) Error() string {
	return fmt.Sprintf("as many workers are out of service as may be (upgrade.maxUnavailable is %d): %s",
		e.Most, strings.Join(e.Others, ", "))
}

func fullError(node string, others []string, opts Options) error {
	return &apicall.Error{
		Op: "drain node", Node: node, Class: apicall.Transient, Err: &FullError{others, opts.MaxUnavailable},
	}
}

// Uncordon lets pods onto a node again that a run of ours has cordoned. Any other stays as it is.
func (c Drainer) Uncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, "uncordon node", node, func(n *corev1.Node) map[string]any {
		if n.Annotations[observed.CordonAnnotation] == "" {
			return nil
		}
		return uncordonPatch()
	})
}

func uncordonPatch() map[string]any {
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
