package v1beta2

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kubeone/internal/model/distro"
)

// The paths of the two lists of hosts.
const (
	controlPlanePath = "controlPlane.hosts"
	workersPath      = "staticWorkers.hosts"
)

func (f *findings) hosts(c *KubeOneCluster) {
	f.controlPlane(c)
	taken := map[string]string{}
	for i, h := range c.ControlPlane.Hosts {
		f.host(Item(controlPlanePath, i), h, c.KubeletConfig, taken)
		if h.Versions != (HostVersions{}) {
			f.errorf(Item(controlPlanePath, i)+".versions",
				"remove it; versions.kubernetes applies to the whole control plane",
				"control-plane hosts always use the cluster version")
		}
	}
	for i, h := range c.StaticWorkers.Hosts {
		f.host(Item(workersPath, i), h, c.KubeletConfig, taken)
		if h.IsLeader {
			f.errorf(Item(workersPath, i)+".isLeader", "remove it", "a worker cannot be the leader")
		}
		f.hostVersions(Item(workersPath, i)+".versions", h.Versions, c.Versions.Kubernetes)
	}
}

func (f *findings) controlPlane(c *KubeOneCluster) {
	hosts := c.ControlPlane.Hosts
	if len(hosts) == 0 && len(c.ControlPlane.NodeSets) == 0 {
		f.missing(controlPlanePath, "list at least one host; high availability needs three")
	}
	if n := len(hosts); n > 0 && n%2 == 0 {
		f.warnf(controlPlanePath, fmt.Sprintf("use %d or %d", n-1, n+1),
			"%d control-plane hosts tolerate no more failures than %d, because etcd needs a majority", n, n-1)
	}
	leader := -1
	for i, h := range hosts {
		switch {
		case h.IsLeader && leader >= 0:
			f.errorf(Item(controlPlanePath, i)+".isLeader", "mark only one host as leader", "%s is already the leader",
				Item(controlPlanePath, leader))
		case h.IsLeader:
			leader = i
		}
	}
}

// host checks one host. kubelet has the cluster's settings. taken maps addresses and names to the paths of their hosts;
// host adds its own.
func (f *findings) host(path string, h HostConfig, kubelet KubeletConfig, taken map[string]string) {
	if h.PublicAddress == "" {
		f.missing(path+".publicAddress", "set the address for SSH")
	} else {
		f.address(path+".publicAddress", h.PublicAddress)
		f.unique(path, "publicAddress", h.PublicAddress, taken)
	}
	if h.PrivateAddress != h.PublicAddress {
		f.address(path+".privateAddress", h.PrivateAddress)
		f.unique(path, "privateAddress", h.PrivateAddress, taken)
	}
	f.nodeAddress(path, h)
	for i, a := range h.IPv6Addresses {
		at := Item(path+".ipv6Addresses", i)
		if ip, err := netip.ParseAddr(a); err != nil || !ip.Is6() || ip.Is4In6() {
			f.errorf(at, "", "%q is not a valid IPv6 address", a)
		} else if a != h.PublicAddress && a != h.PrivateAddress {
			f.unique(path, fmt.Sprintf("ipv6Addresses[%d]", i), a, taken)
		}
	}
	f.hostname(path, h, taken)
	f.id(path, h, taken)
	f.operatingSystem(path+".operatingSystem", h.OperatingSystem)
	f.ssh(path, h.SSHConfig)
	f.nodeTaints(path+".taints", h.Taints)
	f.labels(path+".labels", h.Labels, removable)
	f.annotations(path+".annotations", h.Annotations, removable)
	f.kubelet(path+".kubelet", h.Kubelet, kubelet)
}

// unique reports an address or name that another host already has. Later code would take the two hosts for one.
func (f *findings) unique(path, field, value string, taken map[string]string) {
	key := strings.ToLower(value) // an ID may have capitals
	if ip, err := netip.ParseAddr(value); err == nil {
		key = ip.Unmap().String()
	}
	if other, ok := taken[key]; ok {
		if hostOf(other) != path {
			f.errorf(path+"."+field, "IDs, addresses and hostnames must be unique", "%q is already used by %s",
				value, other)
		}
		return
	}
	taken[key] = path + "." + field
}

// hostOf returns the path of a host from the path of one of its fields.
func hostOf(path string) string {
	return path[:strings.Index(path, "]")+1]
}

func (f *findings) hostname(path string, h HostConfig, taken map[string]string) {
	if h.Hostname == "" {
		return
	}
	if len(validation.IsDNS1123Subdomain(h.Hostname)) > 0 {
		f.errorf(path+".hostname", "use lowercase letters, digits, dashes and dots", "%q is not a valid Node name",
			h.Hostname)
		return
	}
	// It is also the Node's label kubernetes.io/hostname.
	if len(h.Hostname) > validation.LabelValueMaxLength {
		f.errorf(path+".hostname", "", "%q is too long for a Node name: it has %d characters, and the maximum is %d",
			h.Hostname,
			len(h.Hostname), validation.LabelValueMaxLength)
		return
	}
	f.unique(path, "hostname", h.Hostname, taken)
}

// id checks a host's ID. An ID that is another host's address or name would be ambiguous.
func (f *findings) id(path string, h HostConfig, taken map[string]string) {
	if h.ID == "" {
		return
	}
	if len(validation.IsValidLabelValue(h.ID)) > 0 {
		f.errorf(path+".id", "use at most 63 letters, digits, '-', '_' and '.'", "%q is not a valid host ID", h.ID)
		return
	}
	f.unique(path, "id", h.ID, taken)
}

func (f *findings) operatingSystem(path, name string) {
	if name != "" && !slices.Contains(distro.ManifestNames(), name) {
		f.errorf(path, "use one of: "+strings.Join(distro.ManifestNames(), ", ")+", or omit it",
			"%q is not a supported operating system", name)
	}
}

// address checks an IP address or DNS name.
func (f *findings) address(path, a string) {
	if ip, err := netip.ParseAddr(a); err == nil {
		if ip.IsUnspecified() || ip.IsMulticast() {
			f.errorf(path, "", "%s is not the address of a single machine", a)
		}
		return
	}
	if !isDNSName(a) {
		f.errorf(path, addressHint(a), "%q is neither an IP address nor a DNS name", a)
	}
}

// nodeAddress checks that a host's address for the other hosts is an IP address: kubeadm's advertiseAddress, etcd's
// peer URLs and the kubelet's --node-ip accept no name. kubeone must not resolve the name or ask the host instead: DNS
// changes, and a host could claim another host's address.
func (f *findings) nodeAddress(path string, h HostConfig) {
	_, err := netip.ParseAddr(h.PrivateAddress)
	if err == nil || !isDNSName(h.PrivateAddress) { // f.address reports other texts
		return
	}
	field := "privateAddress"
	if h.PrivateAddress == h.PublicAddress {
		field = "publicAddress" // privateAddress has its default
	}
	f.errorf(path+"."+field, "set privateAddress to the IP address of the host; publicAddress can be a name",
		"%q is a DNS name, but kubeadm, etcd and the kubelet need an IP address", h.PrivateAddress)
}

// isDNSName reports whether a lower-case text is a DNS name. A misspelt IPv4 address is not.
func isDNSName(name string) bool {
	return !looksLikeIPv4(name) && len(validation.IsDNS1123Subdomain(name)) == 0
}

// looksLikeIPv4 reports whether a text has digits and dots only, and so is meant as an address.
func looksLikeIPv4(a string) bool {
	return strings.Trim(a, "0123456789.") == ""
}

func addressHint(a string) string {
	host, _, hasPort := strings.Cut(a, ":")
	switch {
	case strings.Contains(a, "@"):
		return "move the user to sshUsername"
	case strings.Contains(a, "://"):
		return "remove the scheme"
	case strings.Contains(a, "/"):
		return "remove the prefix length or path"
	case hasPort && !strings.Contains(host, "["):
		return "remove the port; it has a separate field"
	}
	return ""
}
