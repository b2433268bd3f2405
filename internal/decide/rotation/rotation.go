// Package rotation says in which phase the rotation of an authority's key is, and what comes next, so that nobody ever
// shows what somebody does not trust. It is a pure function of what all control-plane hosts have.
//
// An authority is a CA, or the key pair of service accounts. To rotate it, every host first learns to trust the new
// key, and is given it (Learn); when all of them run with that, each signs with the new one, and makes again what was
// signed by the old one (Use); when it is so everywhere, the old one is dropped (Forget). A phase begins when the one
// before has ended on all hosts. In between, at any moment, everybody trusts what anybody shows.
//
// Nothing is noted but on the hosts: which key is the new one is told by the host that was given it and does not sign
// with it yet, and if there is none, by the one that signs. A host that signs with it notes that the one before is
// still to be dropped (observed.Used). Keys that are trusted besides without such a note are somebody's own, and stay.
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
	Settled Phase = ""       // nothing is to be done
	Learn   Phase = "learn"  // hosts trust the new key, and have it
	Use     Phase = "use"    // it signs, and what the old one signed is made again
	Forget  Phase = "forget" // the old one is trusted no more, nor is anybody else's
)

// Host is what a control-plane host has, by the name of the authority.
type Host struct {
	ID          string
	Authorities map[string]observed.Authority
}

// HostsOf returns those control-plane hosts that are members of the cluster.
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
	Authorities []string // those that are in it, sorted
	New         []string // those of them whose new key is still to be made
	Hosts       []string // the IDs of those that are to be changed, in order
}

// Unknown returns the names of those of the authorities of which some host does not say whom it trusts, sorted.
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

// Begun returns the names of the authorities of which a rotation has begun and not ended, sorted: a host has been given
// a key to sign with, or notes a phase, or they do not sign with the same key. One that is unknown is not among them.
func Begun(hosts []Host) []string {
	var out []string
	for _, name := range observed.Authorities() {
		if len(Unknown(hosts, []string{name})) == 0 && authorityPhase(hosts, name) != Settled {
			out = append(out, name)
		}
	}
	return out
}

// Decide finds the next phase of the authorities that are asked for: what has begun continues. Where nothing has, and
// again is true, the rotation of all of them begins. Every control-plane host must be among the hosts, and none of the
// authorities unknown.
func Decide(hosts []Host, asked []string, anew bool) Decision {
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
		d.Hosts = toDo(hosts, in[p], p)
		return d
	}
	if !anew || len(in[Settled]) == 0 {
		return Decision{}
	}
	d := Decision{Phase: Learn, Authorities: in[Settled], New: slices.Clone(in[Settled])}
	for _, h := range hosts {
		d.Hosts = append(d.Hosts, h.ID)
	}
	return d
}

// toDo returns the IDs of the hosts that have not done their part of a phase. One that knows by its note that it has to
// do it comes after those without, so that a note is there as long as one host has it to do.
func toDo(hosts []Host, names []string, p Phase) []string {
	var without, with []string
	for _, h := range hosts {
		noted := func(name string) bool { return h.Authorities[name].Begun != "" }
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

// authorityPhase returns that of one authority: the first one which some host has not done. The last one has begun only
// where some host notes it.
func authorityPhase(hosts []Host, name string) Phase {
	for _, p := range []Phase{Learn, Use, Forget} {
		if p == Forget && !slices.ContainsFunc(hosts, func(h Host) bool { return h.Authorities[name].Begun != "" }) {
			break
		}
		if slices.ContainsFunc(hosts, func(h Host) bool { return !hasDone(hosts, h, name, p) }) {
			return p
		}
	}
	return Settled
}

// hasDone reports whether a host has done its part of a phase. One that has done a later one has.
func hasDone(hosts []Host, h Host, name string, p Phase) bool {
	a, goal := h.Authorities[name], Goal(hosts, name)
	switch p {
	case Learn:
		return a.Begun != string(Learn) && (a.Signer() == goal || a.Next == goal) &&
			contains(a.Trusted, signingKeys(hosts, name))
	case Use:
		return a.Begun != string(Use) && a.Signer() == goal && a.Next == ""
	case Forget:
		return a.Begun == "" && slices.Equal(a.Trusted, []string{goal})
	case Settled:
	}
	return true
}

// Goal returns the key that is to sign in the end.
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

// Given reports whether some host has been given a key that is to sign later.
func Given(hosts []Host, name string) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.Authorities[name].Next != "" })
}

// Signs reports whether the key that is to sign in the end signs on some host, or has begun to.
func Signs(hosts []Host, name string) bool {
	goal := Goal(hosts, name)
	return slices.ContainsFunc(hosts, func(h Host) bool {
		a := h.Authorities[name]
		return a.Signer() == goal || a.Begun == string(Use)
	})
}

// signingKeys returns the keys by which anything may be signed that somebody shows, and the one that is to sign.
func signingKeys(hosts []Host, name string) []string {
	out := []string{Goal(hosts, name)}
	for _, h := range hosts {
		if signer := h.Authorities[name].Signer(); !slices.Contains(out, signer) {
			out = append(out, signer)
		}
	}
	return out
}

// After is what a host has when it has done its part of a phase towards the goal. Others are the signers of all hosts.
func After(a observed.Authority, p Phase, goal string, others []string) observed.Authority {
	switch p {
	case Learn:
		out := observed.Authority{Trusted: set.Union(a.Trusted, others, []string{goal}), Next: goal}
		if a.Signer() == goal {
			out.Next = a.Next // it signs with it already
		}
		return out
	case Use:
		return observed.Authority{Trusted: set.Union([]string{goal}, a.Trusted), Begun: observed.Used}
	case Forget:
		return observed.Authority{Trusted: []string{goal}}
	case Settled:
	}
	return a
}

// Trusted returns the keys that any of the hosts trusts, the one that is to sign in the end among them, each once, in
// the order of the hosts.
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
