package engine

import (
	"context"
	"fmt"
	"kubeone/internal/cluster"
	"kubeone/internal/componentconfig"
	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
	"maps"
	"slices"
	"time"
)

// observation is all facts that a proposal rests on. It is complete before anything is decided.
type observation struct {
	// base is a proposal without a decision: what was probed, with every machine under the ID of the host that it is.
	base Proposal
	ca   string // by which the caller knows the cluster
	// unread is why the CAs that extension API servers trust could not be read where the request needs them.
	unread   error
	progress map[string]plan.Progress // as plan.RecoverOptions.Progress, where the request needs it
	risks    cluster.UpgradeRisks     // where the request may upgrade hosts
	unasked  error                    // why not all risks are known
}

// factNeeds says which facts a request needs besides those of every probe.
type factNeeds struct {
	extensionCAs bool // the CAs that extension API servers trust: an interrupted run may have left some there
	progress     bool // how far the surviving members of etcd have got
	upgradeRisks bool // what an upgrade would break
}

// needsOf returns what the request needs after a first probe.
func needsOf(r Request, base Proposal) factNeeds {
	asks := base.Observed.Access != nil
	switch r := r.(type) {
	case RotateCA:
		return factNeeds{extensionCAs: asks}
	case Recover:
		listed := len(base.Observed.World.Etcd.Members) > 0
		return factNeeds{progress: !listed || r.About.From == step.SurvivingMember}
	case Apply:
		in := decide.Input{Options: r.Options, Want: base.Want, Is: base.Observed.World}
		return factNeeds{upgradeRisks: asks && decide.MayUpgrade(in)}
	}
	return factNeeds{}
}

// observe probes, and then asks for what the request needs besides.
func (e *Engine) observe(ctx context.Context, r Request) (observation, error) {
	seen, err := e.Observe(ctx)
	if err != nil {
		return observation{base: Proposal{Request: r, Want: e.cfg.Want}}, err
	}
	return e.complete(ctx, r, seen), nil
}

// reportTimeout bounds what is asked of the API besides the probe.
const reportTimeout = 10 * time.Second

// complete adds what the request needs to what was probed. A fact that cannot be found out is left out, and the plan
// says so.
func (e *Engine) complete(ctx context.Context, r Request, seen probe.Result) observation {
	o := observation{base: e.recognised(r, seen), ca: e.knownCA()}
	needs := needsOf(r, o.base)
	if needs.progress {
		o.progress = e.progress(ctx, o.base)
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if needs.extensionCAs {
		var cas map[string][]string
		cas, o.unread = readExtensionCAs(ctx, *o.base.Observed.Access)
		o.base.Observed.World.API.ExtensionCAs, o.base.who.Is.API.ExtensionCAs = cas, cas
	}
	if needs.upgradeRisks {
		o.risks, o.unasked = cluster.FindUpgradeRisks(ctx, *o.base.Observed.Access, o.base.Want.KubernetesVersion)
	}
	return o
}

func readExtensionCAs(ctx context.Context, access cluster.Access) (map[string][]string, error) {
	c, err := cluster.Connect(access)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ExtensionCAs(ctx)
}

// upgradeNotes returns what the reader of an upgrade's plan should know before saying yes. What could not be found out
// is said so.
func (o observation) upgradeNotes(p plan.Plan) []string {
	var drained []string
	for _, s := range p.Steps {
		if step.ParamsOf[step.DrainNodeParams](s.Intent).Upgrade {
			drained = append(drained, s.Intent.NodeName)
		}
	}
	if len(drained) == 0 {
		return nil
	}
	notes := o.risks.Notes(drained)
	if o.unasked != nil {
		notes = append(notes, fmt.Sprintf("not all could be looked at before the upgrade: %v", o.unasked))
	}
	return notes
}

// firstContacts returns the host keys that approval of a plan records, by host ID.
func firstContacts(w observed.World, approved map[string]string) map[string]string {
	out := map[string]string{}
	for id, h := range w.Hosts {
		if h.FirstContact != "" {
			out[id] = h.FirstContact
		}
	}
	for id, keys := range approved {
		if out[id] == "" {
			out[id] = keys
		}
	}
	return out
}

// Facts are what a caller knows of a cluster without asking its hosts: what the API says, and etcd, how both are
// reached, and of hosts what it wants to be believed. They are asked for at every look. probe.API reads the API
// through a kubeconfig.
type Facts func(context.Context) (probe.Result, error)

// About is the same engine for requests that are about some hosts only, by ID. It probes no others and does nothing
// to them; the rest of the cluster is what the facts say: a host is healthy if its Node is Ready. Of workers alone
// it needs no more than the API, and locks these workers alone. A control-plane host joins only if one that has the
// PKI is among the hosts.
func (e *Engine) About(facts Facts, hosts ...string) (*Engine, error) {
	for _, id := range hosts {
		if e.Host(identity.ProbeKey(id)) == nil {
			return nil, &ConfigError{fmt.Errorf("cluster %s has no host %q", e.cfg.Want.Name, id)}
		}
	}
	if len(hosts) == 0 || facts == nil {
		return nil, &ConfigError{
			fmt.Errorf("cluster %s: nothing says which hosts it is about, or what the API says", e.cfg.Want.Name),
		}
	}
	about := *e
	about.about, about.facts = slices.Clone(hosts), facts
	return &about, nil
}

// completed is what the hosts said that the engine is about, with the facts of the rest.
func (e *Engine) completed(ctx context.Context, seen probe.Result) (probe.Result, error) {
	known, err := e.facts(ctx)
	if err != nil {
		return seen, fmt.Errorf("what the API says of cluster %s: %w", e.cfg.Want.Name, err)
	}
	hosts := map[string]observed.Host{}
	maps.Copy(hosts, known.World.Hosts)
	maps.Copy(hosts, seen.World.Hosts)
	known.World.Hosts, known.Requests, known.Spans = hosts, seen.Requests, seen.Spans
	return known, nil
}

// aboutHosts are the IDs of the hosts that the engine is about, as they are called once machines were recognised;
// nil is all.
func (e *Engine) aboutHosts(who identity.Result) map[string]bool {
	if e.about == nil {
		return nil
	}
	out := map[string]bool{}
	for _, id := range e.about {
		out[who.IDs.Of(id)] = true
	}
	return out
}

// recognised is the beginning of a proposal: the wanted cluster and what was observed, with every machine under the ID
// of the host that it is, and hosts at the addresses where they were found.
func (e *Engine) recognised(r Request, seen probe.Result) Proposal {
	p := Proposal{Request: r, Observed: seen, who: identity.Match(e.cfg.Want, seen.World)}
	if e.about == nil {
		p.who.Want = p.who.Want.Harden(hardening(r, p.who))
	}
	p.Want, p.Observed.World = p.who.Want, p.who.Is
	if a := seen.Access; a != nil {
		renamed := *a
		renamed.Via = slices.Clone(a.Via)
		rename(renamed.Via, p.who, func(v *cluster.Endpoint) *string { return &v.ID })
		p.Observed.Access = &renamed
	}
	if a := seen.Etcd; a != nil {
		renamed := *a
		renamed.Via = slices.Clone(a.Via)
		rename(renamed.Via, p.who, func(v *etcd.Endpoint) *string { return &v.ID })
		p.Observed.Etcd = &renamed
	}
	return p
}

// hardening is how much the cluster is to be hardened. One that is recovered has what it had when the copy was made.
func hardening(r Request, who identity.Result) string {
	value, said := decide.Hardening(who.Want, who.Is)
	if recovery, ok := r.(Recover); ok && !said {
		return recovery.About.Hardening
	}
	return value
}

// rename gives endpoints the IDs of the hosts that they lead to.
func rename[E any](via []E, r identity.Result, id func(*E) *string) {
	for i := range via {
		for host, key := range r.Reached {
			if name := id(&via[i]); identity.ProbeKey(*name) == key {
				*name = host
				break
			}
		}
	}
}

// configs are the digests of the wanted configuration, by host ID and name. They depend on a host's addresses, and on
// how much the cluster is hardened, and so are worked out anew only where these are others than in the manifest.
func (e *Engine) configs(r identity.Result) map[string]map[string]string {
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
