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

// Cordon marks a node as unschedulable. Unless mark is empty, the same write stores it in an annotation, so that
// Uncordon recognizes the nodes that kubeone cordoned. A node that is already cordoned stays unchanged.
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

// cordonWithinLimit cordons the node unless kubeone runs have already cordoned MaxUnavailable workers. In that case it
// returns a *FullError of class Transient. It checks the limit again after cordoning: if two runs cordon at the same
// time, both uncordon and try again. A node that is already cordoned stays cordoned.
func (c Drainer) cordonWithinLimit(ctx context.Context, node string, opts Options) error {
	if opts.MaxUnavailable == 0 {
		return c.Cordon(ctx, node, opts.Mark)
	}
	cordoned, err := c.cordonedWorkers(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(cordoned, node):
		return c.Cordon(ctx, node, opts.Mark)
	case len(cordoned) >= opts.MaxUnavailable:
		return newFullError(node, cordoned, opts)
	}
	if err := c.Cordon(ctx, node, opts.Mark); err != nil {
		return err
	}
	cordoned, err = c.cordonedWorkers(ctx)
	if err == nil && len(cordoned) > opts.MaxUnavailable {
		err = newFullError(node, slices.DeleteFunc(cordoned, func(name string) bool { return name == node }), opts)
	}
	if err != nil {
		return errors.Join(err, c.Uncordon(ctx, node))
	}
	return nil
}

// cordonedWorkers returns the names of the workers that kubeone runs have cordoned, sorted.
func (c Drainer) cordonedWorkers(ctx context.Context) ([]string, error) {
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

// FullError reports that the maximum number of workers is already out of service.
type FullError struct {
	Others         []string // names of the workers that are out of service, sorted
	MaxUnavailable int
}

// Error names the workers.
func (e *FullError) Error() string {
	return fmt.Sprintf("upgrade.maxUnavailable is %d, and these workers are already out of service: %s",
		e.MaxUnavailable, strings.Join(e.Others, ", "))
}

func newFullError(node string, others []string, opts Options) error {
	return &apicall.Error{
		Op: "drain node", Node: node, Class: apicall.Transient, Err: &FullError{others, opts.MaxUnavailable},
	}
}

// Uncordon makes a node schedulable again if a kubeone run cordoned it. Any other node stays unchanged.
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

// patchNode calls change with the current node and applies the merge patch that it returns; nil changes nothing. After
// a conflict it starts again.
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
