package match

import (
	"net/netip"
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Nodes indexes the Nodes of a cluster by name and by address.
type Nodes struct {
	all    []observed.Node
	byName map[string]int   // the first one with that name
	at     map[string][]int // by address, in canonical form
}

// IndexNodes indexes a list, which must not be changed while the index is in use.
func IndexNodes(list []observed.Node) Nodes {
	n := Nodes{all: list, byName: make(map[string]int, len(list)), at: make(map[string][]int, len(list))}
	for i := range list {
		if _, known := n.byName[list[i].Name]; !known {
			n.byName[list[i].Name] = i
		}
		for _, a := range list[i].Addresses {
			n.at[canonicalAddress(a)] = append(n.at[canonicalAddress(a)], i)
		}
	}
	return n
}

// Named returns the Node with that name; nil if there is none.
func (n Nodes) Named(name string) *observed.Node {
	if i, ok := n.byName[name]; ok {
		return &n.all[i]
	}
	return nil
}

// At returns the Nodes that have one of the host's addresses, in the order of the list.
func (n Nodes) At(want *desired.Host) []*observed.Node {
	var found []int
	for _, own := range hostAddresses(want) {
		if own != "" {
			found = append(found, n.at[canonicalAddress(own)]...)
		}
	}
	slices.Sort(found)
	var out []*observed.Node
	for _, i := range slices.Compact(found) {
		out = append(out, &n.all[i])
	}
	return out
}

// Of returns the host's Node: by name if the host's name is known, else by address.
func (n Nodes) Of(want *desired.Host, is *observed.Host) *observed.Node {
	name := NodeName(want, is, nil)
	if name == "" {
		return onlyOne(want, n.At(want))
	}
	if named := n.Named(name); named != nil && Owns(want, named) {
		return named
	}
	return nil
}

// Node returns Nodes.Of for a single host without an index.
func Node(nodes []observed.Node, want *desired.Host, is *observed.Host) *observed.Node {
	name := NodeName(want, is, nil)
	var found []observed.Node
	for i := range nodes {
		if name != "" && nodes[i].Name == name || name == "" && At(want, &nodes[i]) {
			found = append(found, nodes[i])
		}
	}
	return IndexNodes(found).Of(want, is)
}

// onlyOne returns the host's own Node among those that have one of its addresses. A kubelet writes the addresses of its
// own Node, but cannot make it a control-plane Node: such a Node comes first, and a control-plane host has no other. A
// worker's Node must be the only one.
func onlyOne(want *desired.Host, found []*observed.Node) *observed.Node {
	if i := slices.IndexFunc(found, func(n *observed.Node) bool { return n.ControlPlane }); i >= 0 {
		return found[i]
	}
	if len(found) != 1 || want.Role == desired.ControlPlane {
		return nil
	}
	return found[0]
}

// canonicalAddress returns one spelling for all addresses that sameIP treats as equal.
func canonicalAddress(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return address
}
