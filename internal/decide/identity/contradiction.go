package identity

import (
	"cmp"
	"slices"
	"strings"

	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Kind is a kind of contradiction.
type Kind string

const (
	// SameID means that two machines carry one ID, as copies of one disk do.
	SameID Kind = "SameID"
	// OtherID means that the manifest gives a host one ID, and the machine at its address carries another one, also from a
	// manifest.
	OtherID Kind = "OtherID"
	// Displaced means that the machine at a host's address is another host, and the machine at that host's address does
	// not say
	// who it is.
	Displaced Kind = "Displaced"
	// OtherHostname means that the manifest gives a member another hostname than its Node's.
	OtherHostname Kind = "OtherHostname"
	// OtherRole means that the manifest gives a member another role than the one it joined with.
	OtherRole Kind = "OtherRole"
)

// Contradiction is two answers about the identity of a machine. It names both sides.
type Contradiction struct {
	Kind    Kind   `json:"kind"`
	Host    string `json:"host"`    // ID of the host in the manifest
	Address string `json:"address"` // its address in the manifest
	Wants   string `json:"wants,omitempty"`
	Says    string `json:"says"` // the machine's claim: an ID, the name of its Node, a role
	// OtherAddress is where the other machine answers or should answer, if there are two.
	OtherAddress string `json:"otherAddress,omitempty"`
	// Home says, for SameID, that the machine at Address is where the host has always been: only the other one is in
	// doubt.
	Home bool `json:"home,omitempty"`
}

// checkMembers compares the manifest with what members joined as, in fields that cannot be changed in place.
func (m *matcher) checkMembers() {
	for e := range m.entries {
		i := m.entries[e].machine
		h := m.entries[e].host
		c := Contradiction{Host: h.ID, Address: m.entryAddress(i)}
		if role := m.otherRole(e); role != "" {
			c.Kind, c.Wants, c.Says = OtherRole, string(h.Role), string(role)
			m.addContradiction(c)
			continue
		}
		if name, other := m.recordedOtherwise(e); name != "" {
			c.Kind, c.Wants, c.Says, c.OtherAddress = OtherHostname, h.Hostname, name, other
			m.addContradiction(c)
			continue
		}
		if !m.hasNode(i) {
			continue
		}
		if node := m.memberNode(i); h.Hostname != "" && node != "" && node != h.Hostname {
			c.Kind, c.Wants, c.Says = OtherHostname, h.Hostname, node
			m.addContradiction(c)
		}
	}
}

// otherRole returns the role in which the host has joined, if the manifest gives it another one; else "". A worker's
// own claim to be more is not enough: etcd or the API must confirm it, unless neither answers. A worker that only
// claims it is left alone, and stops no other host; decide handles that.
func (m *matcher) otherRole(e int) desired.Role {
	h, i := m.entries[e].host, m.entries[e].machine
	seen, marker := m.machineAt(i), m.clusterMarker(i)
	if h.Role == desired.ControlPlane {
		if m.joinedAsWorker(e) {
			return desired.Worker
		}
		return ""
	}
	answers := m.is.API.Reached == observed.Yes || m.is.Etcd.Reached == observed.Yes
	switch {
	case seen.Reach == observed.Reached && !seen.SaysControlPlane():
		return "" // it belongs to an earlier owner of its name or address
	case seen.Reach == observed.Reached && !answers && marker != nil, m.knownAsControlPlane(e):
		return desired.ControlPlane
	}
	return ""
}

// joinedAsWorker reports whether the machine of a control-plane host has joined as a worker: by its marker, or, if that
// is lost, because it has a kubelet but nothing that only control-plane hosts have, and its Node, by name or address,
// is a worker's.
func (m *matcher) joinedAsWorker(e int) bool {
	i := m.entries[e].machine
	if marker := m.clusterMarker(i); marker != nil {
		return marker.Complete && marker.Role == string(desired.Worker)
	}
	seen, at := m.machineAt(i), m.entries[i].host
	if seen.Reach != observed.Reached || seen.Marker != nil || seen.SaysControlPlane() ||
		seen.KubeletConf != observed.Yes && !seen.Kubelet.Active ||
		seen.PKI != observed.No || seen.AdminConf != observed.No || m.knownAsControlPlane(e) {
		return false
	}
	nodes := slices.DeleteFunc(slices.Clone(m.is.API.Nodes), func(n observed.Node) bool {
		named := n.Name == strings.ToLower(cmp.Or(m.entries[e].host.Hostname, seen.Hostname)) && match.Owns(&at, &n)
		return !named && !match.At(&at, &n)
	})
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n observed.Node) bool { return n.ControlPlane })
}

// knownAsControlPlane reports whether etcd has a member of the host, or the API a control-plane Node: by the manifest's
// name, else by address. If the manifest changed the name, a member at its address has another one. It is the host's
// own if the host claims to be of the control plane, or the record has that Node for it.
func (m *matcher) knownAsControlPlane(e int) bool {
	at := m.entries[m.entries[e].machine].host
	at.Hostname = m.entries[e].host.Hostname
	says := m.machineAt(m.entries[e].machine).SaysControlPlane()
	if found := match.Member(m.is.Etcd.Members, &at, strings.ToLower(at.Hostname)); found != nil &&
		(says || at.Hostname == "" || found.Name == "" || strings.EqualFold(found.Name, at.Hostname) ||
			found.Name == m.recordedNode(m.entries[e].host.ID, true)) {
		return true
	}
	node := m.nodes.Of(&at, &observed.Host{})
	return node != nil && node.ControlPlane
}

// recordedOtherwise returns the Node name of entry e in the cluster record, if the manifest gives another one and that
// matters: on the control plane, or because the manifest gives that name to another host, whose address is returned
// too. It is for machines that do not answer; others claim their names themselves. Without it, a new machine that was
// given the name would join in place of the unresponsive one and delete its Node, or its member would seem to have no
// host.
func (m *matcher) recordedOtherwise(e int) (name, address string) {
	h, i := m.entries[e].host, m.entries[e].machine
	if m.machineAt(i).Reach == observed.Reached || h.Hostname == "" {
		return "", ""
	}
	id := h.ID
	if at := m.entries[i].host; !h.HasOwnID { // an unresponsive machine is known by its address
		if id = at.ID; at.HasOwnID && i != e {
			return "", ""
		}
	}
	name = m.recordedNode(id, true)
	if name == "" || name == h.Hostname {
		return "", ""
	}
	if others := m.named[name]; len(others) > 0 {
		return name, m.entryAddress(m.entries[others[0]].machine)
	}
	if h.Role == desired.ControlPlane {
		return name, ""
	}
	return "", ""
}

// memberNode returns the Node name that a member has joined with: its marker's, else that of the only Node with one of
// its addresses; "" if not known.
func (m *matcher) memberNode(i int) string {
	if marker := m.clusterMarker(i); marker.Node != "" {
		return strings.ToLower(marker.Node)
	}
	if m.is.API.Reached != observed.Yes {
		return ""
	}
	nodes := m.nodes.At(&m.entries[i].host)
	if len(nodes) != 1 {
		return ""
	}
	return nodes[0].Name
}
