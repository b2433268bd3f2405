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

// made is what makes another machine of a template: that is rolled out.
type made struct {
	Provider any                         `json:"provider"`
	Versions v1alpha1.MachineVersionInfo `json:"versions"`
	Roles    []v1alpha1.MachineRole      `json:"roles,omitempty"`
}

// metadata is all else of a template: it is written to the machines that there are.
type metadata struct {
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	NodeLabels      map[string]string `json:"nodeLabels,omitempty"`
	NodeAnnotations map[string]string `json:"nodeAnnotations,omitempty"`
	Taints          []v1alpha1.Taint  `json:"taints,omitempty"`
}

// templateOf is a template as texts that are equal if, and only if, the templates mean the same: whatever the order of
// keys in the provider's part, whether lists are empty or missing, and whether versions begin with a v.
func templateOf(t v1alpha1.MachineTemplateSpec) (rollout.Template, error) {
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
	return canonicalJSON(made{Provider: provider, Versions: normalizeVersions(spec.Versions), Roles: spec.Roles}), nil
}

// metadataText leaves out the label by which the sets of a deployment are told apart.
func metadataText(t v1alpha1.MachineTemplateSpec) string {
	return canonicalJSON(metadata{
		Labels: withoutHash(t.ObjectMeta.Labels), Annotations: t.ObjectMeta.Annotations,
		NodeLabels: t.Spec.ObjectMeta.Labels, NodeAnnotations: t.Spec.ObjectMeta.Annotations, Taints: t.Spec.Taints,
	})
}

// withoutHash is labels without the one by which the sets of a deployment are told apart.
func withoutHash(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, v1alpha1.TemplateHashLabel)
	return out
}

// MetadataHash is what AppliedMetadataAnnotation of a Machine has whose metadata is the template's: what a former one
// had and this one has not is gone from it then.
func MetadataHash(t v1alpha1.MachineTemplateSpec) string {
	return rollout.Hash(rollout.Template{Machine: metadataText(t)}, 0)
}

// hasMetadata says whether the Machine has the template's metadata. What others have given it beside is theirs.
func hasMetadata(m *v1alpha1.Machine, t v1alpha1.MachineTemplateSpec) bool {
	var of v1alpha1.MachineTemplateSpec
	of.Spec.ObjectMeta, of.Spec.Taints = m.Spec.ObjectMeta, m.Spec.Taints
	for _, part := range []struct {
		has, wants map[string]string
		into       *map[string]string
	}{
		{m.Labels, withoutHash(t.ObjectMeta.Labels), &of.ObjectMeta.Labels},
		{m.Annotations, t.ObjectMeta.Annotations, &of.ObjectMeta.Annotations},
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
	return metadataText(of) == metadataText(t) && m.Annotations[v1alpha1.AppliedMetadataAnnotation] == MetadataHash(t)
}

// normalizeVersions is versions without a leading v, and without what is ignored.
func normalizeVersions(v v1alpha1.MachineVersionInfo) v1alpha1.MachineVersionInfo {
	out := v1alpha1.MachineVersionInfo{Kubelet: strings.TrimPrefix(v.Kubelet, "v")}
	if v.ContainerRuntime != nil {
		out.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{
			Name: v.ContainerRuntime.Name, Version: strings.TrimPrefix(v.ContainerRuntime.Version, "v"),
		}
	}
	return out
}

// normalizeProviderSpec is the provider's part as JSON has it, without what is empty.
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

// withoutEmpty is a value of JSON without empty objects, lists and texts, and without null, at any depth.
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

// canonicalJSON is a value in JSON, in which the keys of objects are sorted.
func canonicalJSON(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", v, err)) // texts, numbers, lists and maps of them
	}
	return string(out)
}
