// Package match finds the name, the Node and the etcd member of a host in the manifest.
package match

import (
	"net/url"
	"slices"
	"strings"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
)

// NodeName returns the name of the host's Node: the manifest's hostname, else the host's own, else that of the Node
// with one of its addresses. Kubernetes uses lower case.
func NodeName(want *desired.Host, is *observed.Host, node *observed.Node) string {
	switch {
	case want.Hostname != "":
		return strings.ToLower(want.Hostname)
	case is.Hostname != "":
		return strings.ToLower(is.Hostname)
	case node != nil:
		return node.Name
	}
	return ""
}

// hostAddresses returns the addresses that identify the host's Node and etcd member. The public address counts too: in
// a manifest without private addresses it is the only one.
func hostAddresses(want *desired.Host) []string {
	return append([]string{want.PrivateAddress, want.PublicAddress}, want.IPv6Addresses...)
}

// At reports whether a Node has one of the host's addresses.
func At(want *desired.Host, n *observed.Node) bool {
	return slices.ContainsFunc(n.Addresses, func(a string) bool {
		return slices.ContainsFunc(hostAddresses(want), func(own string) bool { return own != "" && sameIP(own, a) })
	})
}

// Owns reports whether a Node with the host's name is the host's. A name that only the host itself claims is not
// enough: the Node must then have one of the host's addresses, if it has any. Otherwise a host could have another one
// drained.
func Owns(want *desired.Host, n *observed.Node) bool {
	return want.Hostname != "" || nodename.ShareAddress(hostAddresses(want), n.Addresses)
}

// OwnsAsMachine reports whether a Node with the host's name belongs to the Machine of the host: by its label, or, if it
// has none, by the host's own marker and its address. For a host in the manifest it is like Owns.
func OwnsAsMachine(want *desired.Host, is *observed.Host, n *observed.Node) bool {
	if want.Machine == "" {
		return Owns(want, n)
	}
	switch owner := n.Labels[desired.OwnerLabel]; {
	case n.ControlPlane:
		return false
	case owner == "":
		return is.Marker != nil && is.Marker.ID == want.ID && nodename.ShareAddress(hostAddresses(want), n.Addresses)
	default:
		return owner == want.ID
	}
}

// Member returns the etcd member of the host, or nil if there is none. It matches by name, otherwise by the address in
// the peer URL, because a member that has not started yet has a peer URL but no name. If several members have the
// host's name, Member prefers the one at the host's address, then a healthy one, then the first; the others were left
// behind by earlier hosts with that name. The name of a worker counts only if it is set in the manifest, so that a
// worker cannot pass itself off as a member.
func Member(members []observed.Member, want *desired.Host, name string) *observed.Member {
	if want.Role == desired.Worker && want.Hostname == "" {
		name = ""
	}
	var found *observed.Member
	best := 0
	for i := range members {
		m, rank := &members[i], 0
		here := slices.ContainsFunc(m.PeerURLs, func(u string) bool { return isPeerOf(u, want) })
		switch named := name != "" && m.Name == name; {
		case named && here:
			rank = 4
		case named && m.Healthy == observed.Yes:
			rank = 3
		case named:
			rank = 2
		case here:
			rank = 1
		}
		if rank > best {
			found, best = m, rank
		}
	}
	return found
}

// MemberIndex returns the index of the host's etcd member in the list, or -1 if there is none. node is the name of the
// host's Node.
func MemberIndex(members []observed.Member, want desired.Host, node string) int {
	m := Member(members, &want, node)
	return slices.IndexFunc(members, func(o observed.Member) bool { return m != nil && o.ID == m.ID })
}

// Part returns what the host has of etcd: its member in the list, and the data on its disk. Node is the name of the
// host's Node.
func Part(w observed.World, want desired.Host, node string) quorum.Part {
	part := quorum.Part{Data: w.Hosts[want.ID].EtcdData}
	if m := Member(w.Etcd.Members, &want, node); m != nil {
		part.Member = m.ID
	}
	return part
}

// isPeerOf reports whether the peer URL contains an address of the host.
func isPeerOf(peer string, want *desired.Host) bool {
	u, err := url.Parse(peer)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(hostAddresses(want), func(a string) bool { return a != "" && sameIP(a, u.Hostname()) })
}

// sameIP reports whether a and b are the same address. An IPv6 address has several spellings.
func sameIP(a, b string) bool {
	return a == b || canonicalAddress(a) == canonicalAddress(b)
}
