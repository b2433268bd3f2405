package condition

import "strings"

// IsStaticPod reports whether a file of a host is the manifest of a static pod.
func IsStaticPod(path string) bool { return strings.HasPrefix(path, "/etc/kubernetes/manifests/") }

// IsRestored reports whether kubeone restores the file after a change. It does not restore static pods, because a
// change there may be needed, which only the operator knows.
func IsRestored(path string) bool {
	for _, ours := range []string{
		"/etc/containerd/", "/etc/systemd/system/", "/etc/modules-load.d/", "/etc/sysctl.d/",
		"/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubeone/", "/etc/kubeone/addons/", "/etc/apt/apt.conf.d/",
	} {
		if strings.HasPrefix(path, ours) {
			return true
		}
	}
	return false
}

// UnitOf returns the unit that reads the file when it starts, and only then; "" if there is none.
func UnitOf(path string) string {
	switch {
	case path == "/etc/containerd/config.toml", strings.HasPrefix(path, "/etc/systemd/system/containerd.service"):
		return UnitContainerd
	case path == "/var/lib/kubelet/config.yaml", strings.HasPrefix(path, "/etc/systemd/system/kubelet.service"):
		return UnitKubelet
	}
	return ""
}
