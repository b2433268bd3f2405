package system

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// Texts of kube-proxy's ConfigMap.
const (
	ProxyConfig     = "config.conf"
	ProxyKubeconfig = "kubeconfig.conf"
)

// RestartAnnotation on kube-proxy's ConfigMap says that its pods have not all begun with what it says now, and since
// which version of it.
const RestartAnnotation = "kubeone.k8c.io/restart"

// ProxySettings names what is set otherwise in kube-proxy's live ConfigMap than the manifest says, by paths: fields
// that the manifest does not decide are whoever's they are.
func ProxySettings(configMap map[string]any, want desired.Cluster) []string {
	if len(unreadableProxy(configMap)) > 0 {
		return nil // nothing can be set in it
	}
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	have, _ := parseYAML(config)
	out := differingPaths("", have, wantedProxy(want))
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	if server, ok := serverOf(kubeconfig); !ok || server != want.Endpoint.URL() {
		out = append(out, "server")
	}
	if valueAt(configMap, "metadata", "annotations", RestartAnnotation) != nil {
		out = append(out, "metadata.annotations."+RestartAnnotation)
	}
	return out
}

// unreadableProxy names the texts of kube-proxy's ConfigMap in which nothing can be set, because they are empty or no
// configuration: kubeadm writes them anew.
func unreadableProxy(configMap map[string]any) []string {
	var out []string
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	if have, err := parseYAML(config); err != nil || len(have) == 0 {
		out = append(out, "data."+ProxyConfig)
	}
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	dials, err := parseYAML(kubeconfig)
	clusters, _ := dials["clusters"].([]any)
	broken := slices.ContainsFunc(clusters, func(c any) bool { return len(asMap(asMap(c)["cluster"])) == 0 })
	if err != nil || len(clusters) == 0 || broken {
		out = append(out, "data."+ProxyKubeconfig)
	}
	return out
}

// SetProxy returns kube-proxy's configuration and kubeconfig with what the manifest says set in them, and all else as
// it was. Texts that are as they must be stay as they are to the byte.
func SetProxy(config, kubeconfig string, want desired.Cluster) (newConfig, newKubeconfig string, err error) {
	have, err := parseYAML(config)
	if err != nil {
		return "", "", fmt.Errorf("%s of ConfigMap %s/kube-proxy cannot be read: %w", ProxyConfig, Namespace, err)
	}
	newConfig, newKubeconfig = config, kubeconfig
	if wanted := wantedProxy(want); len(differingPaths("", have, wanted)) > 0 {
		setFields(have, wanted)
		if newConfig, err = formatYAML(have); err != nil {
			return "", "", err
		}
	}
	if server, ok := serverOf(kubeconfig); kubeconfig == "" || ok && server == want.Endpoint.URL() {
		return newConfig, newKubeconfig, nil
	}
	dials, err := parseYAML(kubeconfig)
	if err != nil {
		return "", "", fmt.Errorf("%s of ConfigMap %s/kube-proxy cannot be read: %w", ProxyKubeconfig, Namespace, err)
	}
	clusters, _ := dials["clusters"].([]any)
	for _, c := range clusters {
		if cluster, ok := valueAt(asMap(c), "cluster").(map[string]any); ok {
			cluster["server"] = want.Endpoint.URL()
		}
	}
	newKubeconfig, err = formatYAML(dials)
	return newConfig, newKubeconfig, err
}

// proxyTexts are kube-proxy's configuration and what it dials, as they are and as SetProxy makes them.
func proxyTexts(configMap map[string]any, want desired.Cluster) (is, will string) {
	if len(unreadableProxy(configMap)) > 0 {
		return "", "" // kubeadm writes it anew
	}
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	newConfig, newKubeconfig, err := SetProxy(config, kubeconfig, want)
	if err != nil {
		return "", ""
	}
	both := func(config, kubeconfig string) string {
		have, _ := parseYAML(config) // it was read before
		out, _ := formatYAML(have)
		server, _ := serverOf(kubeconfig)
		return out + "# " + ProxyKubeconfig + "\nserver: " + server + "\n"
	}
	return both(config, kubeconfig), both(newConfig, newKubeconfig)
}

// wantedProxy is what the manifest says, in the form in which YAML is read.
func wantedProxy(want desired.Cluster) map[string]any {
	encoded, err := formatYAML(componentconfig.KubeProxyConfiguration(want))
	if err != nil {
		panic(fmt.Sprintf("values of the manifest cannot be encoded: %v", err))
	}
	out, err := parseYAML(encoded)
	if err != nil {
		panic(fmt.Sprintf("what was encoded cannot be read: %v", err))
	}
	return out
}

// serverOf is what a kubeconfig dials; false where its clusters do not say one and the same.
func serverOf(kubeconfig string) (server string, ok bool) {
	read, err := parseYAML(kubeconfig)
	if err != nil {
		return "", false
	}
	clusters, _ := read["clusters"].([]any)
	for i, c := range clusters {
		said, _ := valueAt(asMap(c), "cluster", "server").(string)
		if i > 0 && said != server {
			return "", false
		}
		server = said
	}
	return server, server != ""
}

func parseYAML(text string) (map[string]any, error) {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}

func formatYAML(value map[string]any) (string, error) {
	out, err := yaml.Marshal(value)
	return string(out), err
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// differingPaths are the paths of the fields that are wanted and that are otherwise.
func differingPaths(path string, have, want map[string]any) []string {
	var out []string
	for key, value := range want {
		below := key
		if path != "" {
			below = path + "." + key
		}
		if inner, ok := value.(map[string]any); ok {
			out = append(out, differingPaths(below, asMap(have[key]), inner)...)
		} else if !sameValue(have[key], value) {
			out = append(out, below)
		}
	}
	slices.Sort(out)
	return out
}

// sameValue reports whether two values mean the same. Nothing is an empty text and no; numbers are never left out,
// since a missing one is kube-proxy's own default and not 0.
func sameValue(have, want any) bool {
	if have == nil {
		return want == "" || want == false
	}
	if reflect.DeepEqual(have, want) {
		return true
	}
	one, isText := have.(string)
	other, alsoText := want.(string)
	if !isText || !alsoText {
		return false
	}
	a, err := time.ParseDuration(one)
	b, otherErr := time.ParseDuration(other)
	return err == nil && otherErr == nil && a == b
}

// setFields sets the fields that are wanted.
func setFields(have, want map[string]any) {
	for key, value := range want {
		inner, ok := value.(map[string]any)
		if !ok {
			have[key] = value
			continue
		}
		below, ok := have[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			have[key] = below
		}
		setFields(below, inner)
	}
}
