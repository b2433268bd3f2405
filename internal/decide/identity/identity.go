// Package identity finds out which machine is which host of the manifest.
//
// The manifest says where a host is to be found; the machine that answers there says who it is, in the marker that our
// first step left on it. Match brings the two together. A host that the manifest gives an ID, or a hostname, is the
// machine that says so, at whichever of the manifest's addresses it answers: hosts may be reordered, and may swap
// addresses, without anybody being taken for somebody else. Every other host is the machine at its address. Where the
// two sides cannot both be right, nothing is guessed: the answer is a Contradiction that names both.
//
// The package is pure: no I/O, no clock, no log.
package identity

import (
	"cmp"
	"slices"
	"strings"

	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// ProbeKey is the key of a host before Match: its ID in the manifest, or the manifest's address of it. It leads to a
// machine. After Match a host has an ID, which says which host that machine is.
type ProbeKey string

// Result is the manifest and the world, with every machine under the ID of the host that it is.
type Result struct {
	Want desired.Cluster
	Is   observed.World
	// Reached maps a host's ID to the key of the entry whose address leads to its machine.
	Reached map[string]ProbeKey
	// IDs are those that the entries have now.
	IDs IDs
	// Moved are the hosts whose machine answers at another entry's address, in the manifest's order.
	Moved []Move
	// Contradictions are the reasons why some host cannot be told from another. Nothing may be changed
	// while there is one.
	Contradictions []Contradiction
}

// Move is a host whose machine was found at another address than the manifest gives it.
type Move struct {
	Host    string // ID
	Address string // the manifest's for this host
	Found   string // where its machine answers
}

// IDs maps the ID that an entry had before the match to the one that it has now.
type IDs map[string]string

// Of returns the ID of the entry now. A name that is no entry's stays as it is.
func (ids IDs) Of(entry string) string { return cmp.Or(ids[entry], entry) }

// OfAll returns the IDs of all these entries, in their order; nil for none.
func (ids IDs) OfAll(entries ...string) []string {
	var out []string
	for _, entry := range entries {
		out = append(out, ids.Of(entry))
	}
	return out
}

// Match names the machines. The IDs of want's hosts are the keys of is.Hosts: the manifest's ID where it gives one,
// else an address. It changes neither want nor is; the result shares nothing with them that it changes.
func Match(want desired.Cluster, is observed.World) Result {
	m := newMatcher(want, is)
	m.claimHosts()
	m.assignByAddress()
	m.checkMembers()
	return m.buildResult()
}

// entry is a host of the manifest.
type entry struct {
	host    desired.Host
	machine int // index of the entry at whose address its machine answers; -1 while not known
}

type matcher struct {
	want    desired.Cluster
	is      observed.World
	entries []entry            // control plane first
	markers []*observed.Marker // by machine: the note of this cluster's manifest that it carries; nil for none
	names   map[string]int     // how many machines with a marker have that name
	calls   map[string][]int   // machines by the name of their Node, as far as they say so themselves
	own     map[string]int     // entries by the ID that the manifest gives them
	named   map[string][]int   // entries by the hostname that the manifest gives them
	nodes   match.Nodes
	taken   []int // by machine: the entry that it says it is, -1 for none
	found   []Contradiction
}

func newMatcher(want desired.Cluster, is observed.World) *matcher {
	hosts := want.Hosts()
	m := &matcher{
		want: want, is: is, entries: make([]entry, len(hosts)), taken: make([]int, len(hosts)),
		markers: make([]*observed.Marker, len(hosts)), names: map[string]int{}, calls: map[string][]int{},
		own: map[string]int{}, named: map[string][]int{}, nodes: match.IndexNodes(is.API.Nodes),
	}
	for i, h := range hosts {
		m.entries[i], m.taken[i] = entry{host: h, machine: -1}, -1
		if _, known := m.own[h.ID]; h.HasOwnID && !known {
			m.own[h.ID] = i
		}
		m.named[h.Hostname] = append(m.named[h.Hostname], i)
		seen := is.Hosts[h.ID]
		m.calls[nodeName(seen)] = append(m.calls[nodeName(seen)], i)
		if seen.Reach == observed.Reached && seen.Marker != nil &&
			seen.Marker.Cluster == want.Name && seen.Marker.Machine == "" {
			m.markers[i] = seen.Marker
			m.names[nodeName(seen)]++
		}
	}
	return m
}

// machineAt is what answered at the i-th entry's address.
func (m *matcher) machineAt(i int) observed.Host { return m.is.Hosts[m.entries[i].host.ID] }

// clusterMarker returns the note of this cluster that a machine carries; nil if there is none.
func (m *matcher) clusterMarker(i int) *observed.Marker { return m.markers[i] }

// claimHosts finds out which hosts the machines claim to be: by ID first, and of those first the ones that answer at
// the address of the host that they say they are; then members by the name of their Node.
func (m *matcher) claimHosts() {
	m.claimByID()
	for i := range m.entries {
		m.claimByName(i)
	}
}

// claimByID lets machines claim the entries to which the manifest gives the ID that they carry.
func (m *matcher) claimByID() {
	for _, home := range []bool{true, false} {
		for i := range m.entries {
			marker := m.clusterMarker(i)
			if marker == nil || marker.ID == "" || home != (m.entries[i].host.ID == marker.ID) {
				continue
			}
			if e, known := m.own[marker.ID]; known {
				m.claimMachine(i, e)
			}
		}
	}
}

// claimByName lets a member that has claimed no entry claim the one with the name of its Node.
func (m *matcher) claimByName(i int) {
	marker := m.clusterMarker(i)
	if marker == nil || m.taken[i] >= 0 || !m.hasNode(i) {
		return
	}
	name := nodeName(m.machineAt(i))
	if name == "" || m.names[name] > 1 {
		return // hosts of one name are told apart by their addresses, and decide says what is wrong with them
	}
	// An ID that the manifest gives has not reached the machine yet where it knows only a derived one.
	derived := marker.ID == "" || marker.Derived
	mayBe := func(e int) bool {
		h := &m.entries[e].host
		return (derived || !h.HasOwnID) && (marker.Complete || string(h.Role) == marker.Role)
	}
	if n := slices.IndexFunc(m.named[name], mayBe); n >= 0 {
		m.claimMachine(i, m.named[name][n])
	}
}

// hasNode reports whether the i-th machine has a Node's name that it cannot change: it has joined, or has begun to and
// has credentials under that name.
func (m *matcher) hasNode(i int) bool {
	marker := m.clusterMarker(i)
	return marker != nil && (marker.Complete || marker.Node != "" && m.machineAt(i).KubeletConf == observed.Yes)
}

// claimMachine gives the i-th machine to the entry. Two machines for one entry contradict each other.
func (m *matcher) claimMachine(i, e int) {
	other := m.entries[e].machine
	if m.isPromotion(i, e) {
		m.markers[i] = nil // nothing that it says there is believed
		if other < 0 {
			other = e
		}
	}
	if other >= 0 {
		m.addContradiction(Contradiction{
			Kind: SameID, Host: m.entries[e].host.ID, Says: m.entries[e].host.ID,
			Address: m.entryAddress(other), OtherAddress: m.entryAddress(i), Home: other == e,
		})
		return
	}
	m.entries[e].machine, m.taken[i] = i, e
}

// isPromotion reports whether the machine at a worker's address says that it is the control-plane host of entry e, and
// nothing else says so. A worker must not get the cluster's keys by its own word while that host is silent: the machine
// at the host's own address must say that it is another one, as it does when both have swapped their addresses.
func (m *matcher) isPromotion(i, e int) bool {
	h, marker := m.entries[e].host, m.clusterMarker(e)
	if m.entries[i].host.Role != desired.Worker || h.Role != desired.ControlPlane {
		return false
	}
	return marker == nil || (marker.ID == "" || marker.Derived || marker.ID == h.ID) &&
		(h.Hostname == "" || nodeName(m.machineAt(e)) == h.Hostname)
}

// nodeName returns the name of the machine's Node, as far as it says so itself.
func nodeName(seen observed.Host) string {
	if seen.Marker != nil && seen.Marker.Node != "" {
		return strings.ToLower(seen.Marker.Node)
	}
	return strings.ToLower(seen.Hostname)
}

// assignByAddress gives every entry that no machine has claimed the machine at its address.
func (m *matcher) assignByAddress() {
	for e := range m.entries {
		if m.entries[e].machine >= 0 {
			continue
		}
		i := m.findMoved(e)
		seen := m.machineAt(i)
		switch {
		case i != e && seen.Reach == observed.Reached:
			// Somebody else is at its address, and at theirs is one that does not say who it is.
			m.addContradiction(Contradiction{
				Kind: Displaced, Host: m.entries[e].host.ID, Address: m.entryAddress(e),
				Says:         m.entries[m.taken[e]].host.ID,
				OtherAddress: m.entryAddress(i),
			})
		case i == e:
			m.checkID(e)
		}
		m.entries[e].machine, m.taken[i] = i, e
	}
}

// findMoved finds the machine that is left for an entry whose own address leads to another host: the one at that host's
// address, and so on, until nobody has claimed it.
func (m *matcher) findMoved(e int) int {
	i := e
	for m.taken[i] >= 0 {
		i = m.taken[i]
	}
	return i
}

// checkID compares the ID that the manifest gives a host with that of the machine at its address. An ID that was only
// derived may be replaced by the manifest's.
func (m *matcher) checkID(e int) {
	marker := m.clusterMarker(e)
	h := m.entries[e].host
	if marker == nil || marker.ID == "" || marker.Derived || !h.HasOwnID || marker.ID == h.ID ||
		m.isDuplicate(marker.ID) {
		return
	}
	m.addContradiction(Contradiction{Kind: OtherID, Host: h.ID, Address: m.entryAddress(e), Says: marker.ID})
}

// isDuplicate reports whether two machines are known to carry the ID.
func (m *matcher) isDuplicate(id string) bool {
	return slices.ContainsFunc(m.found, func(c Contradiction) bool { return c.Kind == SameID && c.Says == id })
}

func (m *matcher) entryAddress(i int) string { return m.entries[i].host.PublicAddress }

func (m *matcher) addContradiction(c Contradiction) { m.found = append(m.found, c) }

// hostIDs are what the hosts are called from now on, by entry: the manifest's ID; else the one in the marker; else the
// address, or, where another host has that as its ID because it was once at this address, the address and a part of the
// machine ID.
func (m *matcher) hostIDs() []string {
	out, holder := make([]string, len(m.entries)), map[string]int{}
	give := func(e int, id string) { out[e], holder[id] = id, e }
	for e := range m.entries {
		if h := m.entries[e].host; h.HasOwnID {
			give(e, h.ID)
		}
	}
	atHome := func(e int) bool {
		i := m.entries[e].machine
		return i == e && m.clusterMarker(i) != nil && m.clusterMarker(i).ID == m.entries[e].host.ID
	}
	for _, home := range []bool{true, false} {
		for e := range m.entries {
			marker := m.clusterMarker(m.entries[e].machine)
			if out[e] != "" || marker == nil || marker.ID == "" || home != atHome(e) || !home && m.livesElsewhere(e) {
				continue
			}
			other, taken := holder[marker.ID]
			if taken {
				m.addContradiction(Contradiction{
					Kind: SameID, Host: marker.ID, Address: m.entryAddress(m.entries[other].machine), Says: marker.ID,
					OtherAddress: m.entryAddress(m.entries[e].machine), Home: atHome(other),
				})
				continue
			}
			give(e, marker.ID)
		}
	}
	for e := range m.entries {
		if out[e] != "" {
			continue
		}
		id := m.entries[e].host.ID
		if _, taken := holder[id]; taken {
			id += "-" + shortMachineID(cmp.Or(m.machineAt(m.entries[e].machine).MachineID, "other"))
		}
		give(e, id)
	}
	return out
}

// livesElsewhere reports whether the machine of an entry says that it is a host which is known to be another machine:
// the record has that host's Node, which is Ready or of another role, and has none of the machine's addresses. The host
// may be one that the manifest does not have any more.
func (m *matcher) livesElsewhere(e int) bool {
	i := m.entries[e].machine
	if m.is.API.Record == nil {
		return false
	}
	name, at := m.is.API.Record.Nodes[m.clusterMarker(i).ID], &m.entries[i].host
	n := m.nodes.Named(name)
	return name != "" && n != nil && !match.At(at, n) &&
		(n.Ready == observed.Yes || n.ControlPlane != (m.entries[e].host.Role == desired.ControlPlane))
}

// hasOwnID reports whether a manifest has once given the entry's machine its ID: it is no derived one then, also when
// the manifest does not give it any more.
func (m *matcher) hasOwnID(e int) bool {
	marker := m.clusterMarker(m.entries[e].machine)
	return marker != nil && marker.ID != "" && !marker.Derived && !m.livesElsewhere(e)
}

// shortMachineID keeps the part of a machine ID that tells machines apart well enough beside an address.
func shortMachineID(machineID string) string { return machineID[:min(len(machineID), 8)] }

// recordedNode returns the name of the host's Node by the cluster's record, for a machine that does not say it: it is
// down, or was not asked. It is empty if there is no such Node, or another machine says that this is its name; with
// membersOnly, one that carries a note of this cluster.
func (m *matcher) recordedNode(id string, membersOnly bool) string {
	if m.is.API.Record == nil {
		return ""
	}
	name := m.is.API.Record.Nodes[id]
	if name == "" || m.nodes.Named(name) == nil || slices.ContainsFunc(m.calls[name], func(i int) bool {
		return !membersOnly || m.clusterMarker(i) != nil
	}) {
		return ""
	}
	return name
}

// buildResult puts the machines under their IDs, and the hosts where their machines are.
func (m *matcher) buildResult() Result {
	ids := m.hostIDs()
	out := Result{
		Want: m.want, Is: m.is, Reached: map[string]ProbeKey{}, IDs: IDs{}, Contradictions: m.found,
	}
	out.Want.ControlPlane, out.Want.Workers = nil, nil
	out.Is.Hosts = make(map[string]observed.Host, len(m.is.Hosts))
	for e, id := range ids {
		h, at := m.entries[e].host, m.entries[m.entries[e].machine].host
		if at.ID != h.ID {
			out.Moved = append(out.Moved, Move{Host: id, Address: h.PublicAddress, Found: at.PublicAddress})
			h.PublicAddress, h.PrivateAddress, h.IPv6Addresses = at.PublicAddress, at.PrivateAddress, at.IPv6Addresses
			h.SSH = at.SSH
		}
		out.IDs[h.ID] = id
		h.ID, h.HasOwnID, out.Reached[id] = id, h.HasOwnID || m.hasOwnID(e), ProbeKey(at.ID)
		if seen, asked := m.is.Hosts[at.ID]; asked {
			seen.ID = id
			if seen.Hostname == "" {
				seen.Hostname = m.recordedNode(id, false)
			}
			out.Is.Hosts[id] = seen
		}
		if m.is.API.Via == at.ID {
			out.Is.API.Via = id
		}
		if h.Role == desired.ControlPlane {
			out.Want.ControlPlane = append(out.Want.ControlPlane, h)
		} else {
			out.Want.Workers = append(out.Want.Workers, h)
		}
	}
	return out
}
