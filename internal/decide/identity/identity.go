// Package identity determines which machine is which host in the manifest.
//
// The manifest says where a host is; the machine there says who it is, in the marker that the first step wrote. Match
// combines the two. A host with an ID or hostname in the manifest is the machine that claims it, at any address of the
// manifest, so that hosts may be reordered and may swap addresses. Every other host is the machine at its address. If
// both sides cannot be right, Match does not guess: it returns a Contradiction that names both.
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

// ProbeKey is the key of a host before Match: its ID or its address in the manifest. It leads to a machine. After Match
// a host has an ID, which says which host that machine is.
type ProbeKey string

// Result is the manifest and the world, with every machine under the ID of its host.
type Result struct {
	Want desired.Cluster
	Is   observed.World
	// Reached maps a host's ID to the key of the entry at whose address its machine answers.
	Reached map[string]ProbeKey
	// IDs maps the entries' former IDs to the current ones.
	IDs IDs
	// Moved lists the hosts whose machine answers at another entry's address, in the manifest's order.
	Moved []Move
	// Contradictions lists why hosts cannot be told apart. Nothing may be changed while there is one.
	Contradictions []Contradiction
}

// Move is a host whose machine answers at another address than the manifest's.
type Move struct {
	Host    string // ID
	Address string // the manifest's for this host
	Found   string // where its machine answers
}

// IDs maps the ID of an entry before the match to its current one.
type IDs map[string]string

// Of returns the current ID of the entry. The name of no entry stays as it is.
func (ids IDs) Of(entry string) string { return cmp.Or(ids[entry], entry) }

// OfAll returns the current IDs of the entries, in order; nil for none.
func (ids IDs) OfAll(entries ...string) []string {
	var out []string
	for _, entry := range entries {
		out = append(out, ids.Of(entry))
	}
	return out
}

// Match identifies the machines. The keys of is.Hosts are the IDs of want's hosts: the manifest's ID, else an address.
// It changes neither want nor is, and the result is safe to change.
func Match(want desired.Cluster, is observed.World) Result {
	m := newMatcher(want, is)
	m.claimHosts()
	m.assignByAddress()
	m.checkMembers()
	return m.buildResult()
}

// entry is a host in the manifest.
type entry struct {
	host    desired.Host
	machine int // index of the entry at whose address its machine answers; -1 if not known
}

type matcher struct {
	want    desired.Cluster
	is      observed.World
	entries []entry            // control plane first
	markers []*observed.Marker // by machine: its marker of this cluster; nil for none
	names   map[string]int     // number of machines with a marker that have that name
	calls   map[string][]int   // machines by their Node's name, as they claim it
	own     map[string]int     // entries by their ID in the manifest
	named   map[string][]int   // entries by their hostname in the manifest
	nodes   match.Nodes
	taken   []int // by machine: the entry that it claims, -1 for none
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

// machineAt returns what was observed at the i-th entry's address.
func (m *matcher) machineAt(i int) observed.Host { return m.is.Hosts[m.entries[i].host.ID] }

// clusterMarker returns the machine's marker of this cluster; nil if there is none.
func (m *matcher) clusterMarker(i int) *observed.Marker { return m.markers[i] }

// claimHosts lets machines claim hosts: by ID first, beginning with those at the address of the claimed host, then
// members by the name of their Node.
func (m *matcher) claimHosts() {
	m.claimByID()
	for i := range m.entries {
		m.claimByName(i)
	}
}

// claimByID lets machines claim the entries whose ID in the manifest they carry.
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

// claimByName lets a member without an entry claim the entry with the name of its Node.
func (m *matcher) claimByName(i int) {
	marker := m.clusterMarker(i)
	if marker == nil || m.taken[i] >= 0 || !m.hasNode(i) {
		return
	}
	name := nodeName(m.machineAt(i))
	if name == "" || m.names[name] > 1 {
		return // hosts of one name are told apart by address; decide reports them
	}
	// A machine that knows only a derived ID has not received the manifest's yet.
	derived := marker.ID == "" || marker.Derived
	mayBe := func(e int) bool {
		h := &m.entries[e].host
		return (derived || !h.HasOwnID) && (marker.Complete || string(h.Role) == marker.Role)
	}
	if n := slices.IndexFunc(m.named[name], mayBe); n >= 0 {
		m.claimMachine(i, m.named[name][n])
	}
}

// hasNode reports whether the i-th machine has a Node name that it cannot change: it has joined, or has begun to and
// has credentials under that name.
func (m *matcher) hasNode(i int) bool {
	marker := m.clusterMarker(i)
	return marker != nil && (marker.Complete || marker.Node != "" && m.machineAt(i).KubeletConf == observed.Yes)
}

// claimMachine assigns the i-th machine to the entry. Two machines for one entry are a contradiction.
func (m *matcher) claimMachine(i, e int) {
	other := m.entries[e].machine
	if m.isPromotion(i, e) {
		m.markers[i] = nil // its claims are not believed
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

// isPromotion reports whether only the machine's own claim makes a worker's machine the control-plane host of entry e.
// A worker must not get the cluster's keys on its own claim while that host is silent. The machine at the host's
// address must claim to be another one, as it does after both have swapped addresses.
func (m *matcher) isPromotion(i, e int) bool {
	h, marker := m.entries[e].host, m.clusterMarker(e)
	if m.entries[i].host.Role != desired.Worker || h.Role != desired.ControlPlane {
		return false
	}
	return marker == nil || (marker.ID == "" || marker.Derived || marker.ID == h.ID) &&
		(h.Hostname == "" || nodeName(m.machineAt(e)) == h.Hostname)
}

// nodeName returns the name of the machine's Node, as it claims it.
func nodeName(seen observed.Host) string {
	if seen.Marker != nil && seen.Marker.Node != "" {
		return strings.ToLower(seen.Marker.Node)
	}
	return strings.ToLower(seen.Hostname)
}

// assignByAddress assigns to every unclaimed entry the machine at its address.
func (m *matcher) assignByAddress() {
	for e := range m.entries {
		if m.entries[e].machine >= 0 {
			continue
		}
		i := m.findMoved(e)
		seen := m.machineAt(i)
		switch {
		case i != e && seen.Reach == observed.Reached:
			// Another host is at its address, and the machine at that host's address does not say who it is.
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

// findMoved finds the remaining machine for an entry whose address leads to another host: the one at that host's
// address, and so on, until one is unclaimed.
func (m *matcher) findMoved(e int) int {
	i := e
	for m.taken[i] >= 0 {
		i = m.taken[i]
	}
	return i
}

// checkID compares the manifest's ID of a host with that of the machine at its address. The manifest's ID may replace a
// derived one.
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

// hostIDs returns the hosts' IDs, by entry: the manifest's, else the marker's, else the address. If another host
// already has that address as its ID, a part of the machine ID is appended.
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

// livesElsewhere reports whether the entry's machine claims to be a host that is known to be another machine: the
// record has that host's Node, which is Ready or of another role, and has none of the machine's addresses. The host may
// be one that the manifest no longer has.
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

// hasOwnID reports whether a manifest has ever given the entry's machine its ID: then it is not derived, even if the
// manifest no longer gives it.
func (m *matcher) hasOwnID(e int) bool {
	marker := m.clusterMarker(m.entries[e].machine)
	return marker != nil && marker.ID != "" && !marker.Derived && !m.livesElsewhere(e)
}

// shortMachineID returns enough of a machine ID to tell machines at one address apart.
func shortMachineID(machineID string) string { return machineID[:min(len(machineID), 8)] }

// recordedNode returns the host's Node name in the cluster record, for a machine that is down or was not probed. It is
// empty if there is no such Node, or if another machine claims the name; with membersOnly, only machines with a marker
// of this cluster count.
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

// buildResult moves the observations to the IDs of their machines, and the hosts to their machines' addresses.
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
		if seen, probed := m.is.Hosts[at.ID]; probed {
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
