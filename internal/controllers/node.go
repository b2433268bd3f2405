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
	"kubeone/internal/machine"
	"kubeone/internal/provider"
)

// node notes what the Machine's Node says, and gives it the Machine's labels, annotations and taints.
func (r *Machines) node(ctx context.Context, m *v1alpha1.Machine, instance provider.Instance) error {
	n := &corev1.Node{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: instance.Node}, n)
	if err == nil && !provider.Owns(m, n) {
		err = apierrors.NewNotFound(corev1.Resource("nodes"), instance.Node) // somebody else's
	}
	if apierrors.IsNotFound(err) {
		set(m, machine.ConditionReady, metav1.ConditionFalse, reasonNoNode,
			"there is no Node "+instance.Node+" of its own")
		return nil
	}
	if err != nil {
		return err
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
	set(m, machine.ConditionReady, status, reason, message)
	return r.label(ctx, m, n)
}

// versionsOf is what the Node says that it runs.
func versionsOf(n *corev1.Node) *v1alpha1.MachineVersionInfo {
	info := n.Status.NodeInfo
	if info.KubeletVersion == "" {
		return nil
	}
	v := &v1alpha1.MachineVersionInfo{Kubelet: trim(info.KubeletVersion)}
	if name, version, ok := strings.Cut(info.ContainerRuntimeVersion, "://"); ok {
		v.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{Name: name, Version: trim(version)}
	}
	return v
}

func trim(version string) string { return strings.TrimPrefix(version, "v") }

// given is what a Machine has given its Node, so that it can be taken back: of labels and annotations the keys, of
// taints the keys and effects.
type given struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"`
}

// GivenAnnotation on a Node says what its Machine has given it.
const GivenAnnotation = "cluster.k8s.io/given-by-machine"

// label gives the Node what the Machine says, takes back what it said before, and leaves what others have put there. It
// writes once, or not at all.
func (r *Machines) label(ctx context.Context, m *v1alpha1.Machine, n *corev1.Node) error {
	want := n.DeepCopy()
	applyMetadata(m, want)
	if equality.Semantic.DeepEqual(n, want) {
		return nil
	}
	return r.Client.Patch(ctx, want, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{}))
}

// applyMetadata makes the Node have what the Machine says.
func applyMetadata(m *v1alpha1.Machine, n *corev1.Node) {
	var before given
	_ = json.Unmarshal([]byte(n.Annotations[GivenAnnotation]), &before) // what cannot be read was not ours
	now := given{
		Labels:      slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Labels)),
		Annotations: slices.Sorted(maps.Keys(m.Spec.ObjectMeta.Annotations)),
	}
	n.Labels = merge(n.Labels, m.Spec.ObjectMeta.Labels, before.Labels)
	n.Annotations = merge(n.Annotations, m.Spec.ObjectMeta.Annotations, before.Annotations)
	wanted := func(t corev1.Taint) bool {
		return slices.ContainsFunc(m.Spec.Taints, func(w corev1.Taint) bool { return taintKey(w) == taintKey(t) })
	}
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return slices.Contains(before.Taints, taintKey(t)) && !wanted(t)
	})
	for _, t := range m.Spec.Taints {
		now.Taints = append(now.Taints, taintKey(t))
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
	if text, err := json.Marshal(now); err == nil {
		n.Annotations[GivenAnnotation] = string(text)
	}
}

func taintKey(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// merge is a map with what is wanted, and without what was given before and is not wanted any more.
func merge(has, want map[string]string, before []string) map[string]string {
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
