package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
)

// DNS is the cluster's DNS server.
type DNS struct {
	Replicas int32 `json:"replicas,omitempty"` // 0: any number but none
	// Budget says whether the servers have a PodDisruptionBudget: false removes it, nil leaves it as it is.
	Budget *bool `json:"budget,omitempty"`
	// Repository is the location of the image coredns, as HOST[:PORT][/PATH]; "" is that of the other images.
	Repository string `json:"repository,omitempty"`
}

// DNSBudgetAddon is the name of the addon with the cluster DNS servers' budget.
const DNSBudgetAddon = "coredns-pdb"

// DNSImageDigest is the name under which a host notes that it has the image of cluster DNS under the manifest's name.
// Without such a name in the manifest, there is no note.
const DNSImageDigest = "dns-image"

// DNSImageNote returns the digest that hosts note for the image of cluster DNS; "" if they note none.
func DNSImageNote(want Cluster) string {
	repository := want.Network.DNS.Repository
	if repository == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(repository))
	return hex.EncodeToString(sum[:])
}

// The values of Cluster.Firewall.
const (
	FirewallManage  = "manage"  // an active firewall stays active and gets the rules that the cluster needs
	FirewallDisable = "disable" // an active firewall is switched off until a reset
	FirewallIgnore  = "ignore"
)

// FirewallDigest is the name under which a host records how its firewalls were configured.
const FirewallDigest = "firewall"

// PortRange is a range of ports of a cluster's hosts.
type PortRange struct {
	Ports    string `json:"ports"`    // "6443" or "2379-2380"
	Protocol string `json:"protocol"` // tcp or udp
	What     string `json:"what"`     // what listens there
	From     string `json:"from"`     // who must reach it
}

// Port is one row of the table of ports: what listens, and the role of its hosts.
type Port struct {
	PortRange
	Role Role // "" means every role
}

// Ports returns the table of ports that other machines must reach on the cluster's hosts: the control plane's first,
// those of the network plugin and of Services last.
func (c *Cluster) Ports() []Port {
	out := []Port{
		{PortRange{"6443", "tcp", "Kubernetes API server", "all hosts, and clients of the API"}, ControlPlane},
		{PortRange{"2379-2380", "tcp", "etcd", "control-plane hosts"}, ControlPlane},
		{PortRange{"10250", "tcp", "kubelet", "control-plane hosts, and pods that read metrics"}, ""},
	}
	for _, p := range c.Network.CNI.Ports {
		out = append(out, Port{PortRange: p})
	}
	const clients = "clients of Services"
	return append(out,
		Port{PortRange: PortRange{c.Network.NodePortRange, "tcp", "Services of type NodePort", clients}},
		Port{PortRange: PortRange{c.Network.NodePortRange, "udp", "Services of type NodePort", clients}})
}

// PortsOf returns the rows of the table for hosts of a role.
func (c *Cluster) PortsOf(r Role) []Port {
	var out []Port
	for _, p := range c.Ports() {
		if p.Role == "" || p.Role == r {
			out = append(out, p)
		}
	}
	return out
}

// dnsServiceIndex is the position in the service subnet at which kubeadm creates the Service of cluster DNS.
const dnsServiceIndex = 10

// DNSServiceAddress returns the IPv4 address of the Service of cluster DNS; "" without an IPv4 service subnet.
func (n Network) DNSServiceAddress() string {
	subnet, err := netip.ParsePrefix(n.ServiceSubnet)
	if err != nil || !subnet.Addr().Is4() {
		return ""
	}
	address := subnet.Masked().Addr()
	for range dnsServiceIndex {
		address = address.Next()
	}
	return address.String()
}

// The values of Network.IPFamily. The first family is that of addresses which can have only one.
const (
	IPv4      = "IPv4"
	DualStack = "IPv4+IPv6"
)

// IsDualStack reports whether Nodes, pods and Services can have an IPv4 and an IPv6 address each.
func (n Network) IsDualStack() bool { return n.IPFamily == DualStack }

// PodNetworks returns the subnets of pod addresses, in the order of the IP families.
func (n Network) PodNetworks() []string { return withoutEmpty(n.PodSubnet, n.PodSubnetIPv6) }

// ServiceNetworks returns the subnets of Service addresses, in the order of the IP families.
func (n Network) ServiceNetworks() []string {
	return withoutEmpty(n.ServiceSubnet, n.ServiceSubnetIPv6)
}

// FirstServiceAddresses returns the first address of each service subnet. Clients in the cluster reach the API there.
func (n Network) FirstServiceAddresses() []string {
	var out []string
	for _, subnet := range n.ServiceNetworks() {
		if prefix, err := netip.ParsePrefix(subnet); err == nil {
			out = append(out, prefix.Masked().Addr().Next().String())
		}
	}
	return out
}

// NodeAddresses returns the addresses of the host's Node, in the order of the IP families.
func (n Network) NodeAddresses(h Host) []string {
	if n.IsDualStack() && len(h.IPv6Addresses) > 0 {
		return []string{h.PrivateAddress, h.IPv6Addresses[0]}
	}
	return []string{h.PrivateAddress}
}

func withoutEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
