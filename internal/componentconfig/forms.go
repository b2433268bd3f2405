package componentconfig

import "kubeone/internal/model/desired"

// File is a file of a host as its stages write it. Empty content means that the file must not exist.
type File struct{ Path, Content string }

// CertsDir is where containerd reads the settings of registries, each in its own directory.
const CertsDir = "/etc/containerd/certs.d"

// CABundle is the file with the CAs that hosts trust in addition to their system's.
const CABundle = "/etc/kubeone/ca/bundle.pem"

// SandboxLine is the prefix of the line with the sandbox image in containerd's configuration. A reconfiguration keeps
// that line, unless the manifest sets the image.
const SandboxLine = "    sandbox = "

// SettingsFiles returns the files of a host's configuration with that name, as stage reconfigure writes them, without
// kubeadm's.
func SettingsFiles(in Input, name string) []File {
	content := map[string]string{}
	for _, f := range HostFiles(in, desired.Artifacts{}) {
		content[f.Name] = f.Content
	}
	switch name {
	case "kernel":
		return []File{
			{"/etc/modules-load.d/kubeone.conf", content["file_modules"]},
			{"/etc/sysctl.d/99-zz-kubeone.conf", content["file_sysctl"]},
		}
	case "containerd":
		proxy := content["file_proxy"]
		if p := in.Want.Proxy; p.HTTP == "" && p.HTTPS == "" {
			proxy = ""
		}
		files := []File{
			{"/etc/containerd/config.toml", content["file_containerd_config"]},
			{"/etc/systemd/system/containerd.service", content["file_containerd_unit"]},
			{"/etc/systemd/system/containerd.service.d/kubeone-proxy.conf", proxy},
			{"/etc/crictl.yaml", content["file_crictl"]},
			{CABundle, content["file_ca_bundle"]},
		}
		for _, f := range RegistryFiles(in.Want) {
			files = append(files, File{CertsDir + "/" + f.Name + "/hosts.toml", f.Content})
		}
		return files
	case "kubelet":
		return []File{{"/etc/systemd/system/kubelet.service", content["file_kubelet_unit"]}}
	case desired.EtcdDefragAddon, desired.UnattendedUpgradesAddon:
		return hostAddonUnits(in, name)
	}
	return nil
}

// KubeletSettings returns the host's kubelet settings that the manifest decides; nil leaves one to the kubelet.
func KubeletSettings(in Input) map[string]any {
	all := kubeletConfiguration(in.Want)
	for name, value := range hostKubelet(in) {
		all[name] = value
	}
	return decidedSettings(all, in.Want)
}

// ClusterKubeletSettings returns those of the cluster's kubelet-config.
func ClusterKubeletSettings(want desired.Cluster) map[string]any {
	return decidedSettings(kubeletConfiguration(want), want)
}

// ComponentPatterns returns patterns for the paths of components' files.
func ComponentPatterns() []string {
	var out []string
	for _, c := range componentsWithExtras() {
		out = append(out, desired.ComponentDir(c)+"/*")
	}
	return out
}

// Flags returns the flags that the manifest and this program give to the control-plane components, by static pod.
// kubeadm adds its own.
func Flags(want desired.Cluster) map[string]map[string]string {
	return map[string]map[string]string{
		"etcd": etcdFlags(want), "kube-apiserver": apiServerFlags(want),
		"kube-controller-manager": controllerManagerFlags(want), "kube-scheduler": schedulerFlags(want),
	}
}

// ClusterConfiguration returns kubeadm's, as a reconfiguration writes it to the cluster, without images.
func ClusterConfiguration(want desired.Cluster) map[string]any { return clusterConfiguration(want) }
