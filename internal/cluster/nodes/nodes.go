// Package nodes changes Nodes and waits for them.
package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/retry"
)

// Nodes changes Nodes and waits for them.
type Nodes struct {
	Kubernetes kubernetes.Interface
}

// Labels and taints that kubeadm sets on control-plane nodes.
const (
	ControlPlaneTaint = "node-role.kubernetes.io/control-plane"
	ControlPlaneLabel = ControlPlaneTaint
)

// taintsAnnotation lists the taints on a Node that come from the manifest, as "key:Effect,…". A taint that is removed
// from the manifest is then also removed from the Node.
const taintsAnnotation = observed.TaintsAnnotation

// SetNodeMeta sets labels, annotations and taints from the manifest on a Node. It writes nothing if they are already
// set. A label or annotation whose key ends in "-" is removed. Taints from earlier calls and ControlPlaneTaint are
// removed if they are not in taints. Other taints, such as not-ready and unschedulable, stay.
func (c Nodes) SetNodeMeta(ctx context.Context, node string, labels, annotations map[string]string,
	taints []desired.Taint) error {
	return apicall.Retry(ctx, "set labels, annotations and taints of node", node, func(ctx context.Context) error {
		nodes := c.Kubernetes.CoreV1().Nodes()
		have, err := nodes.Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		patch := nodePatch(have, labels, annotations, taints)
		if patch == nil {
			return nil
		}
		text, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = nodes.Patch(ctx, node, types.MergePatchType, text,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		return err
	})
}

// nodePatch returns the smallest merge patch (RFC 7386) that sets labels, annotations and taints on the Node. It
// returns nil if nothing changes. Taints on the Node of a Machine stay, because the controllers manage them.
func nodePatch(have *corev1.Node, labels, annotations map[string]string, taints []desired.Taint) map[string]any {
	if _, hasMachine := labels[desired.OwnerLabel]; hasMachine {
		have = have.DeepCopy()
		delete(have.Annotations, taintsAnnotation)
	}
	want, owned := mergeTaints(have, taints)
	annotations = withTaintsAnnotation(annotations, owned)
	meta := map[string]any{}
	if changes := mapChanges(have.Labels, labels); len(changes) > 0 {
		meta["labels"] = changes
	}
	if changes := mapChanges(have.Annotations, annotations); len(changes) > 0 {
		meta["annotations"] = changes
	}
	patch := map[string]any{}
	if !sameTaints(have.Spec.Taints, want) {
		patch["spec"] = map[string]any{"taints": want}
		// The patch replaces the whole list, so it must fail if the Node has changed.
		meta["resourceVersion"] = have.ResourceVersion
	}
	if len(meta) > 0 {
		patch["metadata"] = meta
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// mapChanges returns the keys in want whose value differs, with nil for keys to remove.
func mapChanges(have, want map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range want {
		name, remove := strings.CutSuffix(key, "-")
		current, exists := have[name]
		switch {
		case remove && exists:
			changes[name] = nil
		case !remove && (!exists || current != value):
			changes[name] = value
		}
	}
	return changes
}

// mergeTaints returns the desired taints of the Node, with those of other programs first, and the new value of
// taintsAnnotation.
func mergeTaints(have *corev1.Node, want []desired.Taint) (merged []corev1.Taint, owned string) {
	ours := strings.Split(have.Annotations[taintsAnnotation], ",")
	merged = []corev1.Taint{}
	for _, t := range have.Spec.Taints {
		wanted := slices.ContainsFunc(want, func(w desired.Taint) bool {
			return w.Key == t.Key && w.Effect == string(t.Effect)
		})
		managed := t.Key == ControlPlaneTaint || slices.Contains(ours, t.Key+":"+string(t.Effect))
		if !wanted && !managed {
			merged = append(merged, t)
		}
	}
	var names []string
	for _, w := range want {
		merged = append(merged, corev1.Taint{Key: w.Key, Value: w.Value, Effect: corev1.TaintEffect(w.Effect)})
		names = append(names, w.Key+":"+w.Effect)
	}
	slices.Sort(names)
	return merged, strings.Join(names, ",")
}

// sameTaints reports whether two lists contain the same taints in any order, by key, value and effect.
func sameTaints(a, b []corev1.Taint) bool {
	contains := func(x corev1.Taint, in []corev1.Taint) bool {
		return slices.ContainsFunc(in, func(y corev1.Taint) bool {
			return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
		})
	}
	for _, x := range a {
		if !contains(x, b) {
			return false
		}
	}
	return len(a) == len(b)
}

func withTaintsAnnotation(annotations map[string]string, owned string) map[string]string {
	all := make(map[string]string, len(annotations)+1)
	for key, value := range annotations {
		all[key] = value
	}
	if owned == "" {
		all[taintsAnnotation+"-"] = ""
	} else {
		all[taintsAnnotation] = owned
	}
	return all
}

// WaitNode waits until the kubelet has registered the node.
func (c Nodes) WaitNode(ctx context.Context, node string) error {
	return apicall.Await(ctx, c.Kubernetes.CoreV1().Nodes(), "wait for node", node,
		func(*corev1.Node) (bool, string, error) { return true, "", nil })
}

// WaitNodeReady waits until the kubelet reports the node as ready.
func (c Nodes) WaitNodeReady(ctx context.Context, node string) error {
	return apicall.Await(ctx, c.Kubernetes.CoreV1().Nodes(), "wait for node", node, Ready)
}

// Ready reports whether a node is ready, and describes its state as reported by the kubelet. err is always nil; it
// makes Ready usable with apicall.Await.
func Ready(n *corev1.Node) (ready bool, state string, err error) {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, condition.Reason + ": " + condition.Message, nil
		}
	}
	return false, "its kubelet has not reported yet", nil
}

// WaitNodeVersion waits until the kubelet reports this version (without v) and, unless containerd is empty, this
// containerd version, and the node is ready.
func (c Nodes) WaitNodeVersion(ctx context.Context, node, kubelet, containerd string) error {
	err := apicall.Await(ctx, c.Kubernetes.CoreV1().Nodes(), "wait for node",
		node, func(n *corev1.Node) (bool, string, error) {
			if have := strings.TrimPrefix(n.Status.NodeInfo.KubeletVersion, "v"); have != kubelet {
				return false, fmt.Sprintf("its kubelet reports version %s, want %s", have, kubelet), nil
			}
			have := strings.TrimPrefix(strings.TrimPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, "containerd://"),
				"v")
			have, _, _ = strings.Cut(have, "+") // without a distribution's build suffix
			if containerd != "" && have != containerd {
				return false, fmt.Sprintf("its container runtime reports version %s, want %s", have, containerd), nil
			}
			return Ready(n)
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; the node stays cordoned, and no other host is changed. Check journalctl -u kubelet on "+
			"the node, then run kubeone apply again", err)
	}
	return err
}

// WaitNodeSilent waits until the kubelet of a Node has stopped reporting. A kubelet that reports not ready is still
// running, and so may be its pods. If the Node does not exist, it returns nil.
func (c Nodes) WaitNodeSilent(ctx context.Context, node string) error {
	const op = "wait until the kubelet stops reporting on node"
	ctx, cancel := apicall.WithDefaultTimeout(ctx, apicall.WaitLimit)
	defer cancel()
	for {
		state := ""
		have, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil && ctx.Err() == nil && apicall.Classify(err) != apicall.Transient:
			return apicall.Wrap(op, node, err)
		case err != nil:
			state = err.Error()
		default:
			if hasStoppedReporting(have) {
				return nil
			}
			state = "its kubelet still reports"
		}
		if !retry.Pause(ctx, apicall.PollEvery) {
			return apicall.EndedError(ctx, op, node, state)
		}
	}
}

// hasStoppedReporting reports whether the kubelet of a Node has stopped reporting, or has never reported.
func hasStoppedReporting(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return true
}

// DeleteNode deletes a Node. It returns nil if the Node does not exist.
func (c Nodes) DeleteNode(ctx context.Context, node string) error {
	return apicall.Retry(ctx, "delete node", node, func(ctx context.Context) error {
		err := c.Kubernetes.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
