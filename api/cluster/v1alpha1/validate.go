package v1alpha1

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The schema makes the same checks. These are for objects that are older than the schema: an API server accepts their
// unchanged fields.

// mostAnnotations is the maximum size in bytes of all annotations of an object, with their keys.
const mostAnnotations = 256 << 10

// IsReservedKey reports whether Machines must not set a label, an annotation or a taint with that key on their Nodes.
// Kubernetes, kubelets or kubeone use the key: a Machine could pose as a control-plane host, or lose its own Node.
func IsReservedKey(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	switch domain {
	case "node-role.kubernetes.io", "machine-controller", "kubeone.k8c.io", Group, "kubeadm.alpha.kubernetes.io":
		return true
	case "kubernetes.io":
		return name == "hostname" || name == "os" || name == "arch"
	case "beta.kubernetes.io":
		return name == "os" || name == "arch"
	}
	return false
}

// IsReservedTaint reports whether Machines must not set a taint with that key on their Nodes. Besides reserved keys,
// these are the taints that Kubernetes sets and removes: a Machine would add them again each time.
func IsReservedTaint(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return IsReservedKey(key) || domain == "node.kubernetes.io" || domain == "node.cloudprovider.kubernetes.io"
}

// Validate returns an error for metadata that no Machine can have, or that no Machine may set on its Node.
func (t *MachineTemplateSpec) Validate() error {
	if err := errors.Join(t.ObjectMeta.problems("metadata")...); err != nil {
		return err
	}
	return t.Spec.ValidateNodeMetadata()
}

// ValidateNodeMetadata returns errors for labels, annotations and taints that no Node can have, or that no Machine may
// set. Each error names a key.
func (s *MachineSpec) ValidateNodeMetadata() error {
	out := s.ObjectMeta.problems("spec.metadata")
	for what, all := range map[string]map[string]string{
		"labels": s.ObjectMeta.Labels, "annotations": s.ObjectMeta.Annotations,
	} {
		for key := range all {
			if IsReservedKey(key) {
				out = append(out, fmt.Errorf("spec.metadata.%s: %q is reserved: a Machine cannot set it", what, key))
			}
		}
	}
	effects := []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
	}
	for _, t := range s.Taints {
		switch {
		case IsReservedTaint(t.Key):
			out = append(out, fmt.Errorf("spec.taints: %q is reserved: a Machine cannot set it", t.Key))
		case len(validation.IsQualifiedName(t.Key)) > 0:
			out = append(out, fmt.Errorf("spec.taints: %q is not a taint's key", t.Key))
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			out = append(out, fmt.Errorf("spec.taints: the value %q of %q is not a taint's", t.Value, t.Key))
		case !slices.Contains(effects, t.Effect):
			out = append(out, fmt.Errorf("spec.taints: the effect %q of %q is not a taint's", t.Effect, t.Key))
		}
	}
	slices.SortFunc(out, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(out...)
}

// problems returns an error for each label and annotation that no object can have.
func (m *ObjectMeta) problems(path string) []error {
	var out []error
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		if len(validation.IsQualifiedName(key)) > 0 {
			out = append(out, fmt.Errorf("%s.labels: %q is not a label's key", path, key))
		} else if len(validation.IsValidLabelValue(m.Labels[key])) > 0 {
			out = append(out, fmt.Errorf("%s.labels: the value %q of %q is not a label's", path, m.Labels[key], key))
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		size += len(key) + len(m.Annotations[key])
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			out = append(out, fmt.Errorf("%s.annotations: %q is not an annotation's key", path, key))
		} else if size > mostAnnotations {
			return append(out, fmt.Errorf("%s.annotations: with %q they are longer than 256 KiB", path, key))
		}
	}
	return out
}
