package components

// DefaultKubernetesVersion is the newest version that labs are made with, without a leading v.
const DefaultKubernetesVersion = "1.36.3"

// Versions of what goes with every Kubernetes version. They are those that a bundle asks the mirror for.
const (
	ContainerdVersion = "v2.4.2"
	RuncVersion       = "v1.5.2"
	CNIPluginsVersion = "v1.9.1"
	FlannelVersion    = "v0.26.7"
	// FlannelCNIVersion names the CNI plugin of flannel as its project would publish it. The plugin's own module is not
	// to be had, so it is built from flannelCNISource, the last version of the common plugins that still had it.
	FlannelCNIVersion = "v1.9.1-flannel1"
	flannelCNISource  = "v0.9.1"
	// AgnhostTag tags the test workload.
	AgnhostTag = "2.57"
)

// cniPlugins are the plugins of the project's release archive, by folder.
var cniPlugins = map[string][]string{
	"main": {"bridge", "dummy", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "tap", "vlan"},
	"meta": {"bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf"},
	"ipam": {"dhcp", "host-local", "static"},
}
