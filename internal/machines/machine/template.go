package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
)

// machineFields are those fields of a template whose change requires a rollout.
type machineFields struct {
	Provider any                         `json:"provider"`
	Versions v1alpha1.MachineVersionInfo `json:"versions"`
	Roles    []v1alpha1.MachineRole      `json:"roles,omitempty"`
}

// metadata contains the other fields of a template. They are copied to existing machines.
type metadata struct {
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	NodeLabels      map[string]string `json:"nodeLabels,omitempty"`
	NodeAnnotations map[string]string `json:"nodeAnnotations,omitempty"`
	Taints          []v1alpha1.Taint  `json:"taints,omitempty"`
}

// newTemplate converts a template to strings that are equal if and only if the templates have the same meaning. The
// order of keys in the provider spec, empty or missing lists, and a leading v in versions make no difference.
func newTemplate(t v1alpha1.MachineTemplateSpec) (rollout.Template, error) {
	machine, err := machineText(t.Spec)
	if err != nil {
		return rollout.Template{}, err
	}
	return rollout.Template{Machine: machine, Metadata: metadataText(t)}, nil
}

func machineText(spec v1alpha1.MachineSpec) (string, error) {
	provider, err := normalizeProviderSpec(spec.ProviderSpec.Value)
	if err != nil {
		return "", fmt.Errorf("spec.providerSpec.value: %w", err)
	}
	fields := machineFields{Provider: provider, Versions: normalizeVersions(spec.Versions), Roles: spec.Roles}
	return canonicalJSON(fields), nil
}

// metadataText returns the metadata of a template as text. It leaves out the hash label, which differs between the sets
// of a deployment.
func metadataText(t v1alpha1.MachineTemplateSpec) string {
	return canonicalJSON(metadata{
		Labels: withoutHash(t.ObjectMeta.Labels), Annotations: t.ObjectMeta.Annotations,
		NodeLabels: t.Spec.ObjectMeta.Labels, NodeAnnotations: t.Spec.ObjectMeta.Annotations, Taints: t.Spec.Taints,
	})
}

// withoutHash returns a copy of labels without the hash label.
func withoutHash(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, v1alpha1.TemplateHashLabel)
	return out
}

// MetadataHash returns the value of AppliedMetadataAnnotation for a Machine with the metadata of the template. The
// annotation also shows that metadata from earlier templates has been removed.
func MetadataHash(t v1alpha1.MachineTemplateSpec) string {
	return rollout.Hash(rollout.Template{Machine: metadataText(t)}, 0)
}

// hasMetadata reports whether the Machine has the metadata of the template. Other labels and annotations are ignored.
func hasMetadata(m *v1alpha1.Machine, t v1alpha1.MachineTemplateSpec) bool {
	var current v1alpha1.MachineTemplateSpec
	current.Spec.ObjectMeta, current.Spec.Taints = m.Spec.ObjectMeta, m.Spec.Taints
	for _, part := range []struct {
		has, wants map[string]string
		into       *map[string]string
	}{
		{m.Labels, withoutHash(t.ObjectMeta.Labels), &current.ObjectMeta.Labels},
		{m.Annotations, t.ObjectMeta.Annotations, &current.ObjectMeta.Annotations},
	} {
		for key := range part.wants {
			if value, ok := part.has[key]; ok {
				if *part.into == nil {
					*part.into = map[string]string{}
				}
				(*part.into)[key] = value
			}
		}
	}
	return metadataText(current) == metadataText(t) &&
		m.Annotations[v1alpha1.AppliedMetadataAnnotation] == MetadataHash(t)
}

// normalizeVersions returns the versions without a leading v and without fields that are ignored.
func normalizeVersions(v v1alpha1.MachineVersionInfo) v1alpha1.MachineVersionInfo {
	out := v1alpha1.MachineVersionInfo{Kubelet: strings.TrimPrefix(v.Kubelet, "v")}
	if v.ContainerRuntime != nil {
		out.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{
			Name: v.ContainerRuntime.Name, Version: strings.TrimPrefix(v.ContainerRuntime.Version, "v"),
		}
	}
	return out
}

// normalizeProviderSpec returns the provider spec as decoded JSON without empty values.
func normalizeProviderSpec(config v1alpha1.ProviderConfig) (any, error) {
	for _, raw := range []*runtime.RawExtension{
		config.CloudProviderSpec, config.OperatingSystemSpec, config.Network,
	} {
		if raw != nil && len(raw.Raw) > 0 && !json.Valid(raw.Raw) {
			return nil, fmt.Errorf("not valid JSON: %.100q", raw.Raw)
		}
	}
	written, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var out any
	if err := json.Unmarshal(written, &out); err != nil {
		return nil, err
	}
	return withoutEmpty(out), nil
}

// withoutEmpty returns decoded JSON without empty objects, lists and strings, and without null, at any depth. In lists,
// such elements become nil.
func withoutEmpty(v any) any {
	switch of := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range of {
			if value = withoutEmpty(value); value != nil {
				out[key] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(of) == 0 {
			return nil
		}
		out := make([]any, 0, len(of))
		for _, value := range of {
			out = append(out, withoutEmpty(value))
		}
		return out
	case string:
		if of == "" {
			return nil
		}
	}
	return v
}

// canonicalJSON encodes v as JSON with sorted object keys.
func canonicalJSON(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", v, err)) // not possible for strings, numbers, lists and maps
	}
	return string(out)
}
