package components

import "strings"

// DefaultKubernetesVersion is the newest version for labs, without a leading v.
const DefaultKubernetesVersion = "1.36.3"

// ContainerdVersion returns the containerd for a Kubernetes version. Older minor versions have an older one, so that an
// upgrade to another minor version changes the container runtime too.
func ContainerdVersion(kubernetes string) string {
	if strings.HasPrefix(kubernetes, "1.34.") || strings.HasPrefix(kubernetes, "1.35.") {
		return "v2.3.7"
	}
	return "v2.4.2"
}

// Versions of the components for every Kubernetes version, as a bundle requests them from the mirror.
const (
	RuncVersion       = "v1.5.2"
	CNIPluginsVersion = "v1.9.1"
	FlannelVersion    = "v0.26.7"
	// FlannelCNIVersion is the version of flannel's CNI plugin as its project would publish it. The plugin's own module
	// is not available. It is built from flannelCNISource, the last version of the common plugins that contained it.
	FlannelCNIVersion = "v1.9.1-flannel1"
	flannelCNISource  = "v0.9.1"
	// AgnhostTag tags the test workload.
	AgnhostTag = "2.57"
)

// cniPlugins are the plugins of the release archive, by folder.
var cniPlugins = map[string][]string{
	"main": {"bridge", "dummy", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "tap", "vlan"},
	"meta": {"bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf"},
	"ipam": {"dhcp", "host-local", "static"},
}
