package settings

import (
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// compareKubelet compares the configuration that a host's kubelet reads.
func compareKubelet(in componentconfig.Input, live Live) []diff.Change {
	if live.Cut[kubeletConfig] {
		return []diff.Change{diff.Unknown(kubeletConfig, tooLong)}
	}
	return compareDecided(kubeletConfig, live.Texts[kubeletConfig], componentconfig.KubeletSettings(in))
}

// OfKubeletConfig is what changes in the cluster's kubelet-config, from which hosts that join have theirs.
func OfKubeletConfig(live string, want desired.Cluster) []diff.Change {
	return compareDecided("ConfigMap kube-system/kubelet-config", live, componentconfig.ClusterKubeletSettings(want))
}

// compareDecided sets in a kubelet's configuration what the manifest decides, and leaves the rest of it.
func compareDecided(of, live string, settings map[string]any) []diff.Change {
	is, err := parseYAML(live)
	if err != nil || len(is) == 0 {
		return []diff.Change{diff.Unknown(of, "what is there is no configuration of a kubelet")}
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

// compareObjects compares objects by their text as YAML, without what is empty: that is the same as not there.
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

// withoutEmpty is an object without what is empty in it.
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

// asYAMLObject is an object in the form in which YAML is read.
func asYAMLObject(object map[string]any) map[string]any {
	encoded, err := yaml.Marshal(object)
	if err != nil {
		return nil // of texts and numbers only
	}
	out, err := parseYAML(string(encoded))
	if err != nil {
		return nil
	}
	return out
}
