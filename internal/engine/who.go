package engine

import (
	"maps"
	"slices"

	"kubeone/internal/cluster"
	"kubeone/internal/componentconfig"
	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// recognizeHosts returns a proposal with the desired cluster and the observation. Each machine is under the ID of its
// host, and hosts have the addresses at which their machines were found.
func (e *Engine) recognizeHosts(r Request, seen probe.Result) Proposal {
	p := Proposal{Request: r, Observed: seen, who: identity.Match(e.cfg.Want, seen.World)}
	if e.about == nil {
		p.who.Want = p.who.Want.Harden(hardeningOf(r, p.who))
	}
	p.who.Want = decide.DefaultAddons(p.who.Want, p.who.Is, e.about == nil)
	if e.about == nil {
		p.who.Is.API.Compared = maps.Clone(p.who.Is.API.Compared)
		maps.DeleteFunc(p.who.Is.API.Compared, func(name string, _ observed.Comparison) bool {
			return p.who.Want.LacksDefaultAddon(name)
		})
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

// hardeningOf returns the hardening of the cluster. A recovered cluster keeps the hardening stored in the copy.
func hardeningOf(r Request, who identity.Result) string {
	value, said := decide.Hardening(who.Want, who.Is)
	if recovery, ok := r.(Recover); ok && !said {
		return recovery.About.Hardening
	}
	return value
}

// renameEndpoints replaces the ID of each endpoint with the ID of the host that was recognized behind it.
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

// configDigests returns the digests of the desired configuration, by host ID and name. It reuses the digests computed
// by New, and computes them again only for hosts whose addresses, or if hardening or addons, differ from the manifest.
func (e *Engine) configDigests(r identity.Result) map[string]map[string]string {
	out := map[string]map[string]string{}
	if r.Want.Hardened() || r.Want.Hardening != e.cfg.Want.Hardening ||
		desired.AddonImagesNote(r.Want) != desired.AddonImagesNote(e.cfg.Want) ||
		r.Want.CachesDNS() != e.cfg.Want.CachesDNS() { // the manifest has no defaults
		out = componentconfig.Digests(r.Want, r.Want.Hosts()...)
	}
	// Kubelets are not reconfigured while it is unknown whether the cluster has the DNS cache.
	unknown := !r.Want.CachesDNS() && e.cfg.Want.DefaultAddon(desired.NodeLocalDNSAddon) == nil &&
		!slices.Contains(e.cfg.Want.ReplacedAddons, desired.NodeLocalDNSAddon) && !decide.KnowsDefaultAddons(r.Is)
	for _, h := range r.Want.Hosts() {
		moved := slices.ContainsFunc(r.Moved, func(m identity.Move) bool { return m.Host == h.ID })
		switch {
		case out[h.ID] != nil:
		case moved:
			out[h.ID] = componentconfig.Digests(r.Want, h)[h.ID]
		default:
			out[h.ID] = e.digests[r.Reached[h.ID]]
		}
		if unknown {
			out[h.ID] = maps.Clone(out[h.ID])
			delete(out[h.ID], "kubelet")
		}
	}
	return out
}

// HostOf returns the host with that ID in the proposal, or nil if the ID is unknown.
func (e *Engine) HostOf(p Proposal, id string) host.Host { return e.ways[p.who.Reached[id]] }
