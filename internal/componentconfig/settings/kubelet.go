package settings

import (
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// kubelet compares the configuration that a host's kubelet reads.
func kubelet(in componentconfig.Input, live Live) []diff.Change {
	if live.Cut[kubeletConfig] {
		return []diff.Change{diff.Unknown(kubeletConfig, tooLong)}
	}
	return decided(kubeletConfig, live.Texts[kubeletConfig], componentconfig.KubeletSettings(in))
}

// OfKubeletConfig is what changes in the cluster's kubelet-config, from which hosts that join have theirs.
func OfKubeletConfig(live string, want desired.Cluster) []diff.Change {
	return decided("ConfigMap kube-system/kubelet-config", live, componentconfig.ClusterKubeletSettings(want))
}

// decided sets in a kubelet's configuration what the manifest decides, and leaves the rest of it.
func decided(of, live string, settings map[string]any) []diff.Change {
	is, err := parsed(live)
	if err != nil || len(is) == 0 {
		return []diff.Change{diff.Unknown(of, "what is there is no configuration of a kubelet")}
	}
	will := maps.Clone(is)
	for name, value := range plain(settings) {
		switch {
		case value == nil, value == "0s" && is[name] == nil:
			delete(will, name)
		default:
			will[name] = value
		}
	}
	return compared(of, is, will)
}

// compared compares objects by their text as YAML, without what is empty: that is the same as not there.
func compared(of string, is, will map[string]any) []diff.Change {
	return changed(of, text(is), text(will))
}

func text(object map[string]any) string {
	out, err := yaml.Marshal(full(object))
	if err != nil || len(out) == 0 || strings.TrimSpace(string(out)) == "{}" {
		return ""
	}
	return string(out)
}

// full is an object without what is empty in it.
func full(object map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			continue
		case map[string]any:
			if v = full(v); len(v) == 0 {
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

func parsed(text string) (map[string]any, error) {
	var out map[string]any
	err := yaml.Unmarshal([]byte(text), &out)
	return out, err
}

// plain is an object in the form in which YAML is read.
func plain(object map[string]any) map[string]any {
	encoded, err := yaml.Marshal(object)
	if err != nil {
		return nil // of texts and numbers only
	}
	out, err := parsed(string(encoded))
	if err != nil {
		return nil
	}
	return out
}
