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

// syncNode notes what the Machine's Node says, and gives it the Machine's labels, annotations and taints.
func (r *Machines) syncNode(ctx context.Context, m *v1alpha1.Machine, instance provider.Instance) error {
	n, err := r.noteNode(ctx, m, instance)
	if err != nil || n == nil {
		return err
	}
	return r.labelNode(ctx, m, n)
}

// noteNode notes what the Machine's Node says, and returns it; nil where there is none.
func (r *Machines) noteNode(ctx context.Context, m *v1alpha1.Machine, instance provider.Instance,
) (*corev1.Node, error) {
	n := &corev1.Node{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: instance.Node}, n)
	if err == nil && !provider.Owns(m, n) {
		err = apierrors.NewNotFound(corev1.Resource("nodes"), instance.Node) // somebody else's
	}
	if apierrors.IsNotFound(err) {
		if !instance.Complete { // an earlier attempt, on this host or another one, may have had a Node
			forgetNode(m)
		}
		setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonNoNode,
			"there is no Node "+instance.Node+" of its own")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
	m.Status.Versions = versionsOf(n)
	status, reason, message := metav1.ConditionUnknown, reasonUnknown, "its Node says nothing"
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

// forgetNode has the Machine say nothing of a Node any more.
func forgetNode(m *v1alpha1.Machine) { m.Status.NodeRef, m.Status.Versions = nil, nil }

// versionsOf is what the Node says that it runs.
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

// given is what a Machine has given its Node, so that it can be taken back: of labels and annotations the keys, of
// taints the keys and effects.
type given struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"`
}

// GivenAnnotation on a Machine says what it has given its Node. It is not on the Node: a kubelet may write annotations
// of its own Node, and is not to say which of an administrator's taints and labels are taken away.
const GivenAnnotation = "cluster.k8s.io/given-to-node"

// labelNode gives the Node what the Machine says, takes back what it said before, and leaves what others have put
// there. It writes once, or not at all; where something is given or taken back, that is noted before and after.
func (r *Machines) labelNode(ctx context.Context, m *v1alpha1.Machine, n *corev1.Node) error {
	before, now := givenBefore(m), givenNow(m)
	want := n.DeepCopy()
	applyMetadata(m, want, before)
	if err := r.noteGiven(ctx, m, before.union(now)); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(n, want) {
		err := r.Client.Patch(ctx, want, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return err
		}
	}
	return r.noteGiven(ctx, m, now)
}

// noteGiven has the Machine say what it has given its Node, and leaves the status as it is here.
func (r *Machines) noteGiven(ctx context.Context, m *v1alpha1.Machine, what given) error {
	text := ""
	if !what.isEmpty() {
		encoded, err := json.Marshal(what)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	before := m.DeepCopy()
	if text == m.Annotations[GivenAnnotation] {
		return nil
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[GivenAnnotation] = text; text == "" {
		delete(m.Annotations, GivenAnnotation)
	}
	err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	m.Status = before.Status
	return err
}

// givenBefore is what the Machine says that it has given its Node. The owner's label was never a Machine's to give, and
// is not taken back, or the Machine would lose its Node.
func givenBefore(m *v1alpha1.Machine) (out given) {
	_ = json.Unmarshal([]byte(m.Annotations[GivenAnnotation]), &out) // what cannot be read was not ours
	out.Labels = slices.DeleteFunc(out.Labels, func(key string) bool { return key == desired.OwnerLabel })
	return out
}

func givenNow(m *v1alpha1.Machine) given {
	out := given{
		Labels:      slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Labels)),
		Annotations: slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Annotations)),
	}
	for _, t := range taintsOf(m) {
		out.Taints = append(out.Taints, taintKey(t))
	}
	slices.Sort(out.Taints)
	return out
}

func (g given) isEmpty() bool { return len(g.Labels)+len(g.Annotations)+len(g.Taints) == 0 }

// union is what either of the two says.
func (g given) union(other given) given {
	both := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return given{
		Labels: both(g.Labels, other.Labels), Annotations: both(g.Annotations, other.Annotations),
		Taints: both(g.Taints, other.Taints),
	}
}

// applyMetadata makes the Node have what the Machine says, and no more what it had given it before.
func applyMetadata(m *v1alpha1.Machine, n *corev1.Node, before given) {
	n.Labels = mergeGiven(n.Labels, m.Spec.ObjectMeta.Labels, before.Labels)
	n.Annotations = mergeGiven(n.Annotations, m.Spec.ObjectMeta.Annotations, before.Annotations)
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

// taintsOf are the Machine's taints as a Node has them.
func taintsOf(m *v1alpha1.Machine) []corev1.Taint {
	out := make([]corev1.Taint, 0, len(m.Spec.Taints))
	for _, t := range m.Spec.Taints {
		out = append(out, corev1.Taint(t))
	}
	return out
}

func taintKey(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// mergeGiven is a map with what is wanted, and without what was given before and is not wanted any more.
func mergeGiven(has, want map[string]string, before []string) map[string]string {
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
