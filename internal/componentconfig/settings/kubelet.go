package settings

import (
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// compareKubelet compares the configuration file of a host's kubelet.
func compareKubelet(in componentconfig.Input, live Live) []diff.Change {
	if live.Cut[kubeletConfig] {
		return []diff.Change{diff.Summary(kubeletConfig, tooLong)}
	}
	return compareDecided(kubeletConfig, live.Texts[kubeletConfig], componentconfig.KubeletSettings(in))
}

// OfKubeletConfig returns the changes to the cluster's kubelet-config, from which joining hosts get theirs.
func OfKubeletConfig(live string, want desired.Cluster) []diff.Change {
	return compareDecided("ConfigMap kube-system/kubelet-config", live, componentconfig.ClusterKubeletSettings(want))
}

// compareDecided applies the manifest's settings to a kubelet's configuration, and keeps the rest of it.
func compareDecided(of, live string, settings map[string]any) []diff.Change {
	is, err := parseYAML(live)
	if err != nil || len(is) == 0 {
		return []diff.Change{diff.Summary(of, "the live configuration is not a kubelet configuration")}
	}
	will := maps.Clone(is)
	for name, value := range asYAMLObject(settings) {
		switch {
		case value == nil, value == "0s" && is[name] == nil:
			delete(will, name)
		default:
			will[name] = value
		}
	}
	return compareObjects(of, is, will)
}

// compareObjects compares objects as YAML text, without empty values, which equal missing ones.
func compareObjects(of string, is, will map[string]any) []diff.Change {
	return changeOf(of, formatYAML(is), formatYAML(will))
}

func formatYAML(object map[string]any) string {
	out, err := yaml.Marshal(withoutEmpty(object))
	if err != nil || len(out) == 0 || strings.TrimSpace(string(out)) == "{}" {
		return ""
	}
	return string(out)
}

// withoutEmpty returns an object without its empty values.
func withoutEmpty(object map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			continue
		case map[string]any:
			if v = withoutEmpty(v); len(v) == 0 {
				continue
			}
			value = v
		case []any:
			if len(v) == 0 {
				continue
			}
		}
		out[key] = value
	}
	return out
}

func parseYAML(text string) (map[string]any, error) {
	var out map[string]any
	err := yaml.Unmarshal([]byte(text), &out)
	return out, err
}

// asYAMLObject converts an object to the form that reading YAML gives.
func asYAMLObject(object map[string]any) map[string]any {
	encoded, err := yaml.Marshal(object)
	if err != nil {
		return nil // cannot happen: there are only strings and numbers
	}
	out, err := parseYAML(string(encoded))
	if err != nil {
		return nil
	}
	return out
}
