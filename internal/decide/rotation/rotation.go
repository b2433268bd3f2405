// Package rotation determines the next phase of the rotation of an authority's key, such that every host trusts what
// any other presents. It is a pure function of what all control-plane hosts have.
//
// An authority is a CA, or the key pair of service accounts. First every host gets the new key and trusts it (Learn).
// When all of them run with that, each signs with the new key and replaces what the old one signed (Use). When all
// hosts have done so, the old key is dropped (Forget). A phase begins when the previous one has ended on all hosts.
//
// Only hosts hold the state. The new key is the one that a host has been given and does not sign with yet; if there is
// none, the one that signs. A host that signs with it notes that the previous key must still be dropped
// (observed.Used). Other trusted keys without such a note are not kubeone's, and stay.
package rotation

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/set"
)

// Phase is a part of a rotation.
type Phase string

// The phases, in order.
const (
	Settled Phase = ""       // nothing to do
	Learn   Phase = "learn"  // hosts have the new key and trust it
	Use     Phase = "use"    // it signs, and what the old one signed is replaced
	Forget  Phase = "forget" // only the new key is still trusted
)

// Host holds the authorities of a control-plane host, by name.
type Host struct {
	ID          string
	Authorities map[string]observed.Authority
}

// HostsOf returns the control-plane hosts that are members of the cluster.
func HostsOf(want []desired.Host, is map[string]observed.Host) []Host {
	var out []Host
	for _, h := range want {
		if seen := is[h.ID]; seen.Marker != nil && seen.Marker.Complete {
			out = append(out, Host{h.ID, seen.Authorities})
		}
	}
	return out
}

// Decision is the next phase.
type Decision struct {
	Phase       Phase
	Authorities []string // the authorities in this phase, sorted
	New         []string // those whose new key must still be created
	Hosts       []string // IDs of the hosts to change, in order
}

// Unknown returns the authorities, sorted, for which some host does not say what it trusts.
func Unknown(hosts []Host, authorities []string) []string {
	var out []string
	for _, name := range authorities {
		if slices.ContainsFunc(hosts, func(h Host) bool { return h.Authorities[name].Signer() == "" }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Begun returns the authorities, sorted, whose rotation has begun and not ended: a host has a new key, or notes a
// phase, or hosts sign with different keys. Unknown authorities are left out.
func Begun(hosts []Host) []string {
	var out []string
	for _, name := range observed.Authorities() {
		if len(Unknown(hosts, []string{name})) == 0 && authorityPhase(hosts, name) != Settled {
			out = append(out, name)
		}
	}
	return out
}

// Decide returns the next phase for the authorities asked for: a rotation that has begun continues. If none has and
// fresh is true, the rotation of all of them begins. Every control-plane host must be among the hosts, and no authority
// may be unknown.
func Decide(hosts []Host, asked []string, fresh bool) Decision {
	in := map[Phase][]string{}
	for _, name := range slices.Sorted(slices.Values(asked)) {
		p := authorityPhase(hosts, name)
		in[p] = append(in[p], name)
	}
	for _, p := range []Phase{Learn, Use, Forget} {
		if len(in[p]) == 0 {
			continue
		}
		d := Decision{Phase: p, Authorities: in[p]}
		d.Hosts = hostsNotDone(hosts, in[p], p)
		return d
	}
	if !fresh || len(in[Settled]) == 0 {
		return Decision{}
	}
	d := Decision{Phase: Learn, Authorities: in[Settled], New: slices.Clone(in[Settled])}
	for _, h := range hosts {
		d.Hosts = append(d.Hosts, h.ID)
	}
	return d
}

// hostsNotDone returns the IDs of the hosts that have not done their part of a phase. Hosts with a note of it come
// last, so that a note exists until the last host is done.
func hostsNotDone(hosts []Host, names []string, p Phase) []string {
	var without, with []string
	for _, h := range hosts {
		noted := func(name string) bool { return h.Authorities[name].BegunPhase != "" }
		switch {
		case !slices.ContainsFunc(names, func(name string) bool { return !hasDone(hosts, h, name, p) }):
		case p == Forget && slices.ContainsFunc(names, noted):
			with = append(with, h.ID)
		default:
			without = append(without, h.ID)
		}
	}
	return append(without, with...)
}

// authorityPhase returns the phase of one authority: the first one that some host has not done. Forget has begun only
// if some host notes it.
func authorityPhase(hosts []Host, name string) Phase {
	for _, p := range []Phase{Learn, Use, Forget} {
		if p == Forget && !slices.ContainsFunc(hosts, func(h Host) bool { return h.Authorities[name].BegunPhase != "" }) {
			break
		}
		if slices.ContainsFunc(hosts, func(h Host) bool { return !hasDone(hosts, h, name, p) }) {
			return p
		}
	}
	return Settled
}

// hasDone reports whether a host has done its part of a phase. A host that has done a later one has.
func hasDone(hosts []Host, h Host, name string, p Phase) bool {
	a, goal := h.Authorities[name], Goal(hosts, name)
	switch p {
	case Learn:
		return a.BegunPhase != string(Learn) && (a.Signer() == goal || a.Next == goal) &&
			contains(a.Trusted, signingKeys(hosts, name))
	case Use:
		return a.BegunPhase != string(Use) && a.Signer() == goal && a.Next == ""
	case Forget:
		return a.BegunPhase == "" && slices.Equal(a.Trusted, []string{goal})
	case Settled:
	}
	return true
}

// Goal returns the key that signs in the end.
func Goal(hosts []Host, name string) string {
	for _, h := range hosts {
		if next := h.Authorities[name].Next; next != "" {
			return next
		}
	}
	for _, h := range hosts {
		if signer := h.Authorities[name].Signer(); signer != "" {
			return signer
		}
	}
	return ""
}

// Given reports whether some host has a key that will sign later.
func Given(hosts []Host, name string) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.Authorities[name].Next != "" })
}

// Signs reports whether the final key signs on some host, or has begun to.
func Signs(hosts []Host, name string) bool {
	goal := Goal(hosts, name)
	return slices.ContainsFunc(hosts, func(h Host) bool {
		a := h.Authorities[name]
		return a.Signer() == goal || a.BegunPhase == string(Use)
	})
}

// signingKeys returns the keys that may have signed what any host presents, and the final one.
func signingKeys(hosts []Host, name string) []string {
	out := []string{Goal(hosts, name)}
	for _, h := range hosts {
		if signer := h.Authorities[name].Signer(); !slices.Contains(out, signer) {
			out = append(out, signer)
		}
	}
	return out
}

// After returns what a host has after its part of a phase towards the goal. Others are the signers of all hosts.
func After(a observed.Authority, p Phase, goal string, others []string) observed.Authority {
	switch p {
	case Learn:
		out := observed.Authority{Trusted: set.Union(a.Trusted, others, []string{goal}), Next: goal}
		if a.Signer() == goal {
			out.Next = a.Next // it already signs with it
		}
		return out
	case Use:
		return observed.Authority{Trusted: set.Union([]string{goal}, a.Trusted), BegunPhase: observed.Used}
	case Forget:
		return observed.Authority{Trusted: []string{goal}}
	case Settled:
	}
	return a
}

// Trusted returns the keys that any of the hosts trusts and the final one, each once, in the order of the hosts.
func Trusted(hosts []Host, name string) []string {
	var out []string
	for _, h := range hosts {
		out = set.Union(out, h.Authorities[name].Trusted)
	}
	return set.Union(out, []string{Goal(hosts, name)})
}

// Signers returns the keys that sign on any of the hosts, in their order, each once.
func Signers(hosts []Host, name string) []string {
	var out []string
	for _, h := range hosts {
		if signer := h.Authorities[name].Signer(); signer != "" {
			out = set.Union(out, []string{signer})
		}
	}
	return out
}

func contains(have, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(key string) bool { return !slices.Contains(have, key) })
}
