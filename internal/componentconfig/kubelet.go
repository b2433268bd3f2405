package componentconfig

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"kubeone/internal/model/desired"

	"sigs.k8s.io/yaml"
)

// kubeletConfiguration returns the cluster's KubeletConfiguration, which kubeadm stores in the cluster for every node.
func kubeletConfiguration(want desired.Cluster) object {
	o := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication":        object{"anonymous": object{"enabled": false}},
		"cgroupDriver":          "systemd",
		"clusterDomain":         want.Network.DNSDomain,
		"containerLogMaxSize":   want.Logging.MaxSize,
		"containerLogMaxFiles":  want.Logging.MaxFiles,
		"readOnlyPort":          0,
		"rotateCertificates":    true,
		"serverTLSBootstrap":    true,
		"serializeImagePulls":   false,
		"maxParallelImagePulls": 4,
	}
	if s := want.TLSCipherSuites.Kubelet; len(s) > 0 {
		o["tlsCipherSuites"] = s
	}
	if want.CachesDNS() {
		// A pod asks cluster DNS itself where the cache refuses the connection.
		o["clusterDNS"] = []string{desired.NodeLocalDNSAddress, want.Network.DNSServiceAddress()}
	}
	hardenKubelet(o, want)
	addSettings(o, want.Kubelet)
	return o
}

// kubeletPatch returns all settings of this host's kubelet in the manifest, as a kubeadm patch of target
// kubeletconfiguration. The host's settings override the cluster's; a setting that neither sets is removed. So the host
// gets the manifest's settings whatever configuration kubeadm has stored in the cluster.
func kubeletPatch(in Input) string {
	all := kubeletConfiguration(in.Want)
	for name, value := range hostKubelet(in) {
		all[name] = value
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	var patch []operation
	values := decidedSettings(all, in.Want)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path := "/" + name
		if values[name] != nil {
			patch = append(patch, operation{"add", path, values[name]})
			continue
		}
		// A patch cannot remove what is missing. A null would stay in the file, where an older kubelet may not know it.
		patch = append(patch, operation{"add", path, "unset"}, operation{"remove", path, nil})
	}
	text, err := yaml.Marshal(patch)
	if err != nil {
		panic("kubelet patch of " + in.NodeName + ": " + err.Error()) // maps of strings and numbers only
	}
	return string(text)
}

// decidedSettings returns the settings that the manifest decides; nil leaves one to the kubelet.
func decidedSettings(all object, want desired.Cluster) map[string]any {
	out := map[string]any{}
	for _, name := range append(patchedSettings(), hardenedSettings(want)...) {
		value := all[name]
		if value == nil && (strings.HasSuffix(name, "Age") || strings.HasSuffix(name, "Timeout")) {
			value = "0s" // the kubelet does not accept an empty duration
		}
		if address := want.Network.DNSServiceAddress(); value == nil && name == "clusterDNS" && address != "" {
			value = []string{address} // as kubeadm sets it
		}
		out[name] = value
	}
	return out
}

// patchedSettings returns the names of the kubelet settings that the manifest decides.
func patchedSettings() []string {
	names := []string{"clusterDNS", "containerLogMaxFiles", "containerLogMaxSize", "registerWithTaints",
		"tlsCipherSuites"}
	for f := range reflect.TypeFor[desired.Kubelet]().Fields() {
		names = append(names, settingName(f))
	}
	return names
}

// settingName returns the kubelet's name of a field of desired.Kubelet, which is its JSON name.
func settingName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// hostKubelet returns the manifest's kubelet settings for this host alone.
func hostKubelet(in Input) object {
	o := object{}
	addSettings(o, in.Host.Kubelet)
	if in.Host.Role == desired.ControlPlane && len(in.Host.Taints) > 0 {
		o["registerWithTaints"] = taintObjects(in.Host) // from the start, not only when kubeadm marks the Node
	}
	return o
}

// hostKubeletText returns the host's own settings as they count in its configuration's digest.
func hostKubeletText(in Input) string {
	o := hostKubelet(in)
	o["apiVersion"], o["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	text, err := yaml.Marshal(o)
	if err != nil {
		panic("kubelet patch of " + in.NodeName + ": " + err.Error()) // maps of strings and numbers only
	}
	return string(text)
}

// addSettings adds those kubelet settings that are set.
func addSettings(o object, k desired.Kubelet) {
	for f, v := range reflect.ValueOf(k).Fields() {
		switch {
		case v.IsZero():
		case v.Kind() == reflect.Pointer:
			o[settingName(f)] = v.Elem().Interface()
		case v.Kind() != reflect.Map || v.Len() > 0:
			o[settingName(f)] = v.Interface()
		}
	}
}
