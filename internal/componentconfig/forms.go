package componentconfig

import "kubeone/internal/model/desired"

// File is a file of a host as its stages write it. One without content is not there.
type File struct{ Path, Content string }

// CertsDir is where containerd looks for what is said of registries, each in a directory of its own.
const CertsDir = "/etc/containerd/certs.d"

// CABundle is the file of the CAs that hosts trust besides their system's.
const CABundle = "/etc/kubeone/ca/bundle.pem"

// SandboxLine is how the line of containerd's configuration begins that names the image of sandboxes. A reconfiguration
// leaves it as it is, unless the manifest names that image.
const SandboxLine = "    sandbox = "

// SettingsFiles are the files of which a host's configuration of that name consists, as stage reconfigure writes them,
// apart from what kubeadm makes there.
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
	}
	return nil
}

// KubeletSettings are the settings of a host's kubelet on which the manifest decides; nil is one that it leaves to the
// kubelet.
func KubeletSettings(in Input) map[string]any {
	all := kubeletConfiguration(in.Want)
	for name, value := range hostKubelet(in) {
		all[name] = value
	}
	return decidedSettings(all, in.Want)
}

// ClusterKubeletSettings are those that the cluster's kubelet-config has.
func ClusterKubeletSettings(want desired.Cluster) map[string]any {
	return decidedSettings(kubeletConfiguration(want), want)
}

// ComponentPatterns are where such files are.
func ComponentPatterns() []string {
	var out []string
	for _, c := range componentsWithExtras() {
		out = append(out, desired.ComponentDir(c)+"/*")
	}
	return out
}

// Flags are those that the manifest and this program give the programs of the control plane, by their static pods.
// kubeadm gives them others.
func Flags(want desired.Cluster) map[string]map[string]string {
	return map[string]map[string]string{
		"etcd": etcdFlags(want), "kube-apiserver": apiServerFlags(want),
		"kube-controller-manager": controllerManagerFlags(want), "kube-scheduler": schedulerFlags(want),
	}
}

// ClusterConfiguration is kubeadm's, as a reconfiguration writes it into the cluster, without images.
func ClusterConfiguration(want desired.Cluster) map[string]any { return clusterConfiguration(want) }
