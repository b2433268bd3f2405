package desired

import (
	"crypto/sha256"
	"encoding/hex"
)

// DNS is the cluster's DNS server.
type DNS struct {
	Replicas int32 `json:"replicas,omitempty"` // 0: any number but none
	// Budget has a PodDisruptionBudget made for the servers; false takes it away, nil leaves what there is.
	Budget *bool `json:"budget,omitempty"`
	// Repository is where the image coredns is, as HOST[:PORT][/PATH]; "" is where the other images are.
	Repository string `json:"repository,omitempty"`
}

// DNSBudgetAddon is the name of the addon that has the budget of the cluster's DNS servers.
const DNSBudgetAddon = "coredns-pdb"

// DNSImageDigest is the name under which a host notes that it has the image of cluster DNS under the name that the
// manifest gives it. A host of a cluster whose manifest gives it none has no such note.
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
	FirewallManage  = "manage"  // a firewall that is active stays so, and gets the rules that the cluster needs
	FirewallDisable = "disable" // a firewall that is active is switched off until a reset
	FirewallIgnore  = "ignore"
)

// FirewallDigest is the name under which a host records how its firewalls were configured.
const FirewallDigest = "firewall"

// PortRange is ports at which hosts of a cluster are reached.
type PortRange struct {
	Ports    string `json:"ports"`    // "6443" or "2379-2380"
	Protocol string `json:"protocol"` // tcp or udp
	What     string `json:"what"`     // who listens there
	From     string `json:"from"`     // who has to reach it
}

// Port is one row of the table of ports: where something listens, and on hosts of which role.
type Port struct {
	PortRange
	Role Role // "" is every role
}

// Ports returns the table of ports that other machines must reach on the hosts of the cluster. Those of the control
// plane come first, those of the network plugin and of Services last.
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

// PodNetworks returns the networks that pods have their addresses from.
func (n Network) PodNetworks() []string {
	var out []string
	for _, network := range []string{n.PodSubnet, n.PodSubnetIPv6} {
		if network != "" {
			out = append(out, network)
		}
	}
	return out
}
