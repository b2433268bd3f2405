package engine

import (
	"slices"

	"kubeone/internal/cluster"
	"kubeone/internal/componentconfig"
	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/probe"
)

// recognizeHosts is the beginning of a proposal: the wanted cluster and what was observed, with every machine under the
// ID of the host that it is, and hosts at the addresses where they were found.
func (e *Engine) recognizeHosts(r Request, seen probe.Result) Proposal {
	p := Proposal{Request: r, Observed: seen, who: identity.Match(e.cfg.Want, seen.World)}
	if e.about == nil {
		p.who.Want = p.who.Want.Harden(hardeningOf(r, p.who))
	}
	p.Want, p.Observed.World = p.who.Want, p.who.Is
	if a := seen.Access; a != nil {
		renamed := *a
		renamed.Via = slices.Clone(a.Via)
		renameEndpoints(renamed.Via, p.who, func(v *cluster.Endpoint) *string { return &v.ID })
		p.Observed.Access = &renamed
	}
	if a := seen.Etcd; a != nil {
		renamed := *a
		renamed.Via = slices.Clone(a.Via)
		renameEndpoints(renamed.Via, p.who, func(v *etcd.Endpoint) *string { return &v.ID })
		p.Observed.Etcd = &renamed
	}
	return p
}

// hardeningOf is how much the cluster is to be hardened. One that is recovered has what it had when the copy was made.
func hardeningOf(r Request, who identity.Result) string {
	value, said := decide.Hardening(who.Want, who.Is)
	if recovery, ok := r.(Recover); ok && !said {
		return recovery.About.Hardening
	}
	return value
}

// renameEndpoints gives endpoints the IDs of the hosts that they lead to.
func renameEndpoints[E any](via []E, r identity.Result, id func(*E) *string) {
	for i := range via {
		for host, key := range r.Reached {
			if name := id(&via[i]); identity.ProbeKey(*name) == key {
				*name = host
				break
			}
		}
	}
}

// configDigests are the digests of the wanted configuration, by host ID and name. They depend on a host's addresses,
// and on how much the cluster is hardened, and so are worked out anew only where these are others than in the manifest.
func (e *Engine) configDigests(r identity.Result) map[string]map[string]string {
	out := map[string]map[string]string{}
	if r.Want.Hardened() || r.Want.Hardening != e.cfg.Want.Hardening { // the manifest alone has no baseline in it
		out = componentconfig.Digests(r.Want, r.Want.Hosts()...)
	}
	for _, h := range r.Want.Hosts() {
		moved := slices.ContainsFunc(r.Moved, func(m identity.Move) bool { return m.Host == h.ID })
		switch {
		case out[h.ID] != nil:
		case moved:
			out[h.ID] = componentconfig.Digests(r.Want, h)[h.ID]
		default:
			out[h.ID] = e.digests[r.Reached[h.ID]]
		}
	}
	return out
}

// HostOf is the way to a host, by its ID in the proposal; nil for an ID that is none.
func (e *Engine) HostOf(p Proposal, id string) host.Host { return e.ways[p.who.Reached[id]] }
