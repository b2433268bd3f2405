package settings

import (
	"maps"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// OfKubeadmConfig returns the changes to the ClusterConfiguration in ConfigMap kube-system/kubeadm-config. It ignores
// versions, images and the API's endpoint, which other steps change.
func OfKubeadmConfig(live string, want desired.Cluster) []diff.Change {
	const of = "ConfigMap kube-system/kubeadm-config"
	is, err := parseYAML(live)
	if err != nil || len(is) == 0 {
		return []diff.Change{diff.Summary(of, "the live configuration is not a kubeadm configuration")}
	}
	will := maps.Clone(is)
	// kubeadm's defaults (API kubeadm.k8s.io/v1beta4).
	for name, value := range map[string]any{
		"imageRepository": "registry.k8s.io", "certificateValidityPeriod": "8760h0m0s",
		"caCertificateValidityPeriod": "87600h0m0s",
	} {
		if is[name] != nil {
			will[name] = value
		}
	}
	wanted := asYAMLObject(componentconfig.ClusterConfiguration(want))
	maps.Copy(will, wanted)
	will["dns"] = is["dns"]
	will["etcd"] = withImage(will["etcd"], is["etcd"])
	for _, side := range []map[string]any{is, will} {
		for _, name := range []string{"kubernetesVersion", "controlPlaneEndpoint"} {
			delete(side, name)
		}
		if server, ok := side["apiServer"].(map[string]any); ok {
			server = maps.Clone(server)
			delete(server, "certSANs")
			side["apiServer"] = server
		}
	}
	return compareObjects(of, is, will)
}

// withImage keeps the current image of etcd.
func withImage(will, is any) any {
	local := func(etcd any) map[string]any {
		of, _ := etcd.(map[string]any)
		out, _ := of["local"].(map[string]any)
		return maps.Clone(out)
	}
	wanted, live := local(will), local(is)
	if wanted == nil || live == nil {
		return will
	}
	for _, name := range []string{"imageRepository", "imageTag"} {
		delete(wanted, name)
		if live[name] != nil {
			wanted[name] = live[name]
		}
	}
	return map[string]any{"local": wanted}
}
