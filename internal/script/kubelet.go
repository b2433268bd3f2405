package script

import (
	"kubeone/internal/desired"

	"sigs.k8s.io/yaml"
)

// kubeletConfiguration is the cluster's KubeletConfiguration, which kubeadm keeps in the cluster and gives every node.
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
	settings(o, want.Kubelet)
	return o
}

// kubeletPatch is this host's own settings, as a kubeadm patch of target kubeletconfiguration; they win over
// the cluster's.
func kubeletPatch(in Input) string {
	o := object{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	settings(o, in.Host.Kubelet)
	if in.Host.Role == desired.ControlPlane && len(in.Host.Taints) > 0 {
		o["registerWithTaints"] = taints(in.Host) // from its first moment, not only when kubeadm marks it
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		panic("kubelet patch of " + in.NodeName + ": " + err.Error()) // maps of strings and numbers only
	}
	return string(text)
}

// settings adds those kubelet settings that are set.
func settings(o object, k desired.Kubelet) {
	for name, value := range map[string]map[string]string{
		"systemReserved": k.SystemReserved,
		"kubeReserved":   k.KubeReserved,
		"evictionHard":   k.EvictionHard,
	} {
		if len(value) > 0 {
			o[name] = value
		}
	}
	for name, value := range map[string]*int32{
		"maxPods":                     k.MaxPods,
		"imageGCHighThresholdPercent": k.ImageGCHighThresholdPercent,
		"imageGCLowThresholdPercent":  k.ImageGCLowThresholdPercent,
	} {
		if value != nil {
			o[name] = *value
		}
	}
	if k.PodPidsLimit != nil {
		o["podPidsLimit"] = *k.PodPidsLimit
	}
	for name, value := range map[string]string{
		"imageMinimumGCAge": k.ImageMinimumGCAge,
		"imageMaximumGCAge": k.ImageMaximumGCAge,
	} {
		if value != "" {
			o[name] = value
		}
	}
}
