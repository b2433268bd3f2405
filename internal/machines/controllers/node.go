package controllers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/desired"
)

// syncNode records the state of the Node that belongs to the Machine, and applies the labels, annotations and taints of
// the Machine to it.
func (r *Machines) syncNode(ctx context.Context, m *v1alpha1.Machine, instance provider.Instance) error {
	n, err := r.recordNode(ctx, m, instance)
	if err != nil || n == nil {
		return err
	}
	return r.labelNode(ctx, m, n)
}

// recordNode records the state of the Node in m.Status and returns the Node. It returns nil if the Node does not exist
// or belongs to another Machine.
func (r *Machines) recordNode(ctx context.Context, m *v1alpha1.Machine, instance provider.Instance,
) (*corev1.Node, error) {
	n := &corev1.Node{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: instance.Node}, n)
	if err == nil && !provider.Owns(m, n) {
		err = apierrors.NewNotFound(corev1.Resource("nodes"), instance.Node) // belongs to another Machine
	}
	if apierrors.IsNotFound(err) {
		if !instance.Complete { // a Node of an earlier attempt may be recorded
			clearNode(m)
		}
		setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonNoNode,
			"Node "+instance.Node+" does not exist or belongs to another Machine")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
	m.Status.Versions = versionsOf(n)
	status, reason, message := metav1.ConditionUnknown, reasonUnknown, "the Node does not report whether it is ready"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status, message = metav1.ConditionStatus(c.Status), c.Message
			reason = map[metav1.ConditionStatus]string{
				metav1.ConditionTrue: reasonNodeReady, metav1.ConditionFalse: reasonNodeNotReady,
			}[status]
			if reason == "" {
				reason = reasonNodeSilent
			}
		}
	}
	setCondition(m, machine.ConditionReady, status, reason, message)
	return n, nil
}

func clearNode(m *v1alpha1.Machine) { m.Status.NodeRef, m.Status.Versions = nil, nil }

// versionsOf returns the versions that the Node reports, or nil if it reports none.
func versionsOf(n *corev1.Node) *v1alpha1.MachineVersionInfo {
	info := n.Status.NodeInfo
	if info.KubeletVersion == "" {
		return nil
	}
	v := &v1alpha1.MachineVersionInfo{Kubelet: trimVersion(info.KubeletVersion)}
	if name, version, ok := strings.Cut(info.ContainerRuntimeVersion, "://"); ok {
		v.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{Name: name, Version: trimVersion(version)}
	}
	return v
}

func trimVersion(version string) string { return strings.TrimPrefix(version, "v") }

// appliedKeys lists the metadata that a Machine has set on its Node and may remove: the keys of labels and annotations,
// and "key:effect" for taints.
type appliedKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"`
}

// AppliedKeysAnnotation on a Machine stores its appliedKeys. It is not stored on the Node, because a kubelet can write
// the annotations of its Node, and must not be able to remove taints and labels that an administrator set.
const AppliedKeysAnnotation = "cluster.k8s.io/given-to-node"

// labelNode applies the metadata of the Machine to the Node. It removes what is no longer in the Machine, and keeps
// what others have set. It writes the Node at most once, and updates AppliedKeysAnnotation before and after that.
func (r *Machines) labelNode(ctx context.Context, m *v1alpha1.Machine, n *corev1.Node) error {
	before, now := readAppliedKeys(m), desiredKeys(m)
	want := n.DeepCopy()
	applyMetadata(m, want, before)
	if err := r.saveAppliedKeys(ctx, m, before.union(now)); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(n, want) {
		err := r.Client.Patch(ctx, want, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return err
		}
	}
	return r.saveAppliedKeys(ctx, m, now)
}

// saveAppliedKeys writes AppliedKeysAnnotation if it changed. It keeps m.Status, which is not written yet.
func (r *Machines) saveAppliedKeys(ctx context.Context, m *v1alpha1.Machine, what appliedKeys) error {
	text := ""
	if !what.isEmpty() {
		encoded, err := json.Marshal(what)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	before := m.DeepCopy()
	if text == m.Annotations[AppliedKeysAnnotation] {
		return nil
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[AppliedKeysAnnotation] = text; text == "" {
		delete(m.Annotations, AppliedKeysAnnotation)
	}
	err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	m.Status = before.Status
	return err
}

// readAppliedKeys reads AppliedKeysAnnotation. It leaves out the owner label, which a Machine never sets: without this
// label, the Node would no longer belong to the Machine.
func readAppliedKeys(m *v1alpha1.Machine) (out appliedKeys) {
	// an invalid annotation was not written by kubeone
	_ = json.Unmarshal([]byte(m.Annotations[AppliedKeysAnnotation]), &out)
	out.Labels = slices.DeleteFunc(out.Labels, func(key string) bool { return key == desired.OwnerLabel })
	return out
}

func desiredKeys(m *v1alpha1.Machine) appliedKeys {
	out := appliedKeys{
		Labels:      slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Labels)),
		Annotations: slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Annotations)),
	}
	for _, t := range taintsOf(m) {
		out.Taints = append(out.Taints, taintKey(t))
	}
	slices.Sort(out.Taints)
	return out
}

func (g appliedKeys) isEmpty() bool { return len(g.Labels)+len(g.Annotations)+len(g.Taints) == 0 }

func (g appliedKeys) union(other appliedKeys) appliedKeys {
	both := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return appliedKeys{
		Labels: both(g.Labels, other.Labels), Annotations: both(g.Annotations, other.Annotations),
		Taints: both(g.Taints, other.Taints),
	}
}

// applyMetadata sets the metadata of the Machine on the Node, and removes keys in before that are no longer in the
// Machine.
func applyMetadata(m *v1alpha1.Machine, n *corev1.Node, before appliedKeys) {
	n.Labels = mergeMap(n.Labels, m.Spec.ObjectMeta.Labels, before.Labels)
	n.Annotations = mergeMap(n.Annotations, m.Spec.ObjectMeta.Annotations, before.Annotations)
	taints := taintsOf(m)
	wanted := func(t corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(w corev1.Taint) bool { return taintKey(w) == taintKey(t) })
	}
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return slices.Contains(before.Taints, taintKey(t)) && !wanted(t)
	})
	for _, t := range taints {
		same := func(has corev1.Taint) bool { return taintKey(has) == taintKey(t) }
		if i := slices.IndexFunc(n.Spec.Taints, same); i >= 0 {
			n.Spec.Taints[i].Value = t.Value
		} else {
			n.Spec.Taints = append(n.Spec.Taints, t)
		}
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[v1alpha1.MachineAnnotation] = m.Namespace + "/" + m.Name
}

func taintsOf(m *v1alpha1.Machine) []corev1.Taint {
	out := make([]corev1.Taint, 0, len(m.Spec.Taints))
	for _, t := range m.Spec.Taints {
		out = append(out, corev1.Taint(t))
	}
	return out
}

func taintKey(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// mergeMap returns a copy of has with want added, and without those keys in before that are not in want.
func mergeMap(has, want map[string]string, before []string) map[string]string {
	out := maps.Clone(has)
	if out == nil {
		out = map[string]string{}
	}
	for _, key := range before {
		if _, wanted := want[key]; !wanted {
			delete(out, key)
		}
	}
	maps.Copy(out, want)
	return out
}
