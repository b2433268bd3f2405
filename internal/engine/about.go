package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kubeone/internal/decide/identity"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

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

// completeAbout is what the hosts said that the engine is about, with the facts of the rest.
func (e *Engine) completeAbout(ctx context.Context, seen probe.Result) (probe.Result, error) {
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
