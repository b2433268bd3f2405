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

// Keys of kube-proxy's ConfigMap.
const (
	ProxyConfig     = "config.conf"
	ProxyKubeconfig = "kubeconfig.conf"
)

// RestartAnnotation on kube-proxy's ConfigMap means that not all of its pods have started with its present content.
// Its value is the version of the ConfigMap since which that is true.
const RestartAnnotation = "kubeone.k8c.io/restart"

// ProxySettings returns the paths at which kube-proxy's live ConfigMap differs from the manifest. Fields that the
// manifest does not decide are left to others.
func ProxySettings(configMap map[string]any, want desired.Cluster) []string {
	if len(unreadableProxyKeys(configMap)) > 0 {
		return nil // its fields cannot be set
	}
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	have, _ := parseYAML(config)
	out := differingPaths("", have, desiredProxy(want))
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	if server, ok := readServer(kubeconfig); !ok || server != want.Endpoint.URL() {
		out = append(out, "server")
	}
	if valueAt(configMap, "metadata", "annotations", RestartAnnotation) != nil {
		out = append(out, "metadata.annotations."+RestartAnnotation)
	}
	return out
}

// unreadableProxyKeys returns the keys of kube-proxy's ConfigMap that are empty or invalid, so that no field can be set
// in them. kubeadm writes them again.
func unreadableProxyKeys(configMap map[string]any) []string {
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

// SetProxy sets the manifest's fields in kube-proxy's configuration and kubeconfig, and keeps everything else. Texts
// without a difference stay unchanged to the byte.
func SetProxy(config, kubeconfig string, want desired.Cluster) (newConfig, newKubeconfig string, err error) {
	have, err := parseYAML(config)
	if err != nil {
		return "", "", fmt.Errorf("%s of ConfigMap %s/kube-proxy cannot be read: %w", ProxyConfig, Namespace, err)
	}
	newConfig, newKubeconfig = config, kubeconfig
	if wanted := desiredProxy(want); len(differingPaths("", have, wanted)) > 0 {
		setFields(have, wanted)
		if newConfig, err = formatYAML(have); err != nil {
			return "", "", err
		}
	}
	if server, ok := readServer(kubeconfig); kubeconfig == "" || ok && server == want.Endpoint.URL() {
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

// renderProxyTexts returns kube-proxy's configuration and server address, live and after SetProxy.
func renderProxyTexts(configMap map[string]any, want desired.Cluster) (is, will string) {
	if len(unreadableProxyKeys(configMap)) > 0 {
		return "", "" // kubeadm writes it again
	}
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	newConfig, newKubeconfig, err := SetProxy(config, kubeconfig, want)
	if err != nil {
		return "", ""
	}
	both := func(config, kubeconfig string) string {
		have, _ := parseYAML(config) // it was parsed before
		out, _ := formatYAML(have)
		server, _ := readServer(kubeconfig)
		return out + "# " + ProxyKubeconfig + "\nserver: " + server + "\n"
	}
	return both(config, kubeconfig), both(newConfig, newKubeconfig)
}

// desiredProxy returns the manifest's fields, in the form of parsed YAML.
func desiredProxy(want desired.Cluster) map[string]any {
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

// readServer returns the server of a kubeconfig; false if its clusters do not agree on one.
func readServer(kubeconfig string) (server string, ok bool) {
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

// differingPaths returns the paths of desired fields with a different value.
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

// sameValue reports whether two values mean the same. A missing value equals an empty text and false, but never a
// number: a missing number is kube-proxy's own default, not 0.
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

// setFields sets the desired fields.
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
