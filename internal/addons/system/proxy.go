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

// RestartAnnotation on the kube-proxy ConfigMap means that some kube-proxy pods may still run with an older version of
// it. Its value is the resource version of the ConfigMap before the change.
const RestartAnnotation = "kubeone.k8c.io/restart"

// ProxySettings returns the paths at which the live kube-proxy ConfigMap differs from the manifest. It ignores fields
// that the manifest does not set. It returns nil if the ConfigMap is unreadable.
func ProxySettings(configMap map[string]any, want desired.Cluster) []string {
	if len(unreadableProxyKeys(configMap)) > 0 {
		return nil // fields cannot be set in an unreadable text
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

// unreadableProxyKeys returns the keys in the kube-proxy ConfigMap that are empty or invalid, so that no field can be
// set in them. kubeadm writes these keys again.
func unreadableProxyKeys(configMap map[string]any) []string {
	var out []string
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	if have, err := parseYAML(config); err != nil || len(have) == 0 {
		out = append(out, "data."+ProxyConfig)
	}
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	parsed, err := parseYAML(kubeconfig)
	clusters, _ := parsed["clusters"].([]any)
	incomplete := slices.ContainsFunc(clusters, func(c any) bool { return len(asMap(asMap(c)["cluster"])) == 0 })
	if err != nil || len(clusters) == 0 || incomplete {
		out = append(out, "data."+ProxyKubeconfig)
	}
	return out
}

// SetProxy sets the fields that the manifest decides in the configuration and kubeconfig of kube-proxy. It keeps all
// other fields. A text that already has the desired values is returned unchanged.
func SetProxy(config, kubeconfig string, want desired.Cluster) (newConfig, newKubeconfig string, err error) {
	have, err := parseYAML(config)
	if err != nil {
		return "", "", fmt.Errorf("%s in ConfigMap %s/kube-proxy cannot be read: %w", ProxyConfig, Namespace, err)
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
	parsed, err := parseYAML(kubeconfig)
	if err != nil {
		return "", "", fmt.Errorf("%s in ConfigMap %s/kube-proxy cannot be read: %w", ProxyKubeconfig, Namespace, err)
	}
	clusters, _ := parsed["clusters"].([]any)
	for _, c := range clusters {
		if cluster, ok := valueAt(asMap(c), "cluster").(map[string]any); ok {
			cluster["server"] = want.Endpoint.URL()
		}
	}
	newKubeconfig, err = formatYAML(parsed)
	return newConfig, newKubeconfig, err
}

// renderProxyTexts returns the configuration and server address of kube-proxy as a text for a diff: the live values and
// the values after SetProxy. Both are empty if they cannot be read.
func renderProxyTexts(configMap map[string]any, want desired.Cluster) (current, planned string) {
	if len(unreadableProxyKeys(configMap)) > 0 {
		return "", "" // kubeadm writes it again
	}
	config, _ := valueAt(configMap, "data", ProxyConfig).(string)
	kubeconfig, _ := valueAt(configMap, "data", ProxyKubeconfig).(string)
	newConfig, newKubeconfig, err := SetProxy(config, kubeconfig, want)
	if err != nil {
		return "", ""
	}
	render := func(config, kubeconfig string) string {
		have, _ := parseYAML(config) // it was parsed before
		out, _ := formatYAML(have)
		server, _ := readServer(kubeconfig)
		return out + "# " + ProxyKubeconfig + "\nserver: " + server + "\n"
	}
	return render(config, kubeconfig), render(newConfig, newKubeconfig)
}

// desiredProxy returns the kube-proxy fields that the manifest decides, as parsed YAML.
func desiredProxy(want desired.Cluster) map[string]any {
	encoded, err := formatYAML(componentconfig.KubeProxyConfiguration(want))
	if err != nil {
		panic(fmt.Sprintf("the kube-proxy configuration cannot be encoded: %v", err))
	}
	out, err := parseYAML(encoded)
	if err != nil {
		panic(fmt.Sprintf("the encoded kube-proxy configuration cannot be read: %v", err))
	}
	return out
}

// readServer returns the server address in a kubeconfig. It returns false if the kubeconfig is invalid, or if its
// clusters have different addresses or none.
func readServer(kubeconfig string) (server string, ok bool) {
	parsed, err := parseYAML(kubeconfig)
	if err != nil {
		return "", false
	}
	clusters, _ := parsed["clusters"].([]any)
	for i, c := range clusters {
		address, _ := valueAt(asMap(c), "cluster", "server").(string)
		if i > 0 && address != server {
			return "", false
		}
		server = address
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

// differingPaths returns the sorted paths of the desired fields that have a different value.
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

// sameValue reports whether two values have the same meaning. A missing value equals "" and false, but not 0: if a
// number is missing, kube-proxy uses its own default. Durations are compared by length.
func sameValue(have, want any) bool {
	if have == nil {
		return want == "" || want == false
	}
	if reflect.DeepEqual(have, want) {
		return true
	}
	haveText, haveIsText := have.(string)
	wantText, wantIsText := want.(string)
	if !haveIsText || !wantIsText {
		return false
	}
	a, err := time.ParseDuration(haveText)
	b, otherErr := time.ParseDuration(wantText)
	return err == nil && otherErr == nil && a == b
}

// setFields sets the desired fields in have and keeps its other fields.
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
