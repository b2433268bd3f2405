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

// Facts returns what a caller knows about a cluster without connecting to its hosts: the state of the API and etcd, how
// to reach them, and facts about trusted hosts. It is called on every observation. probe.API is an implementation that
// uses a kubeconfig.
type Facts func(context.Context) (probe.Result, error)

// About returns the engine restricted to some hosts, by ID. It neither probes nor changes other hosts; their state
// comes from the facts, where a host is healthy if its Node is Ready. For workers alone the engine needs only the API
// and locks only these workers. A control-plane host joins only if one of the given hosts has the PKI.
func (e *Engine) About(facts Facts, hosts ...string) (*Engine, error) {
	for _, id := range hosts {
		if e.Host(identity.ProbeKey(id)) == nil {
			return nil, &ConfigError{fmt.Errorf("cluster %s has no host %q", e.cfg.Want.Name, id)}
		}
	}
	if len(hosts) == 0 || facts == nil {
		return nil, &ConfigError{
			fmt.Errorf("cluster %s: an engine about hosts needs hosts and the facts of the API", e.cfg.Want.Name),
		}
	}
	about := *e
	about.about, about.facts = slices.Clone(hosts), facts
	return &about, nil
}

// completeAbout adds facts about the rest of the cluster to the answers of the probed hosts.
func (e *Engine) completeAbout(ctx context.Context, seen probe.Result) (probe.Result, error) {
	known, err := e.facts(ctx)
	if err != nil {
		return seen, fmt.Errorf("read the API of cluster %s: %w", e.cfg.Want.Name, err)
	}
	hosts := map[string]observed.Host{}
	maps.Copy(hosts, known.World.Hosts)
	maps.Copy(hosts, seen.World.Hosts)
	known.World.Hosts, known.Requests, known.Spans = hosts, seen.Requests, seen.Spans
	return known, nil
}

// aboutHosts returns the IDs of the hosts that the engine is restricted to, after machines were recognized, or nil if
// it is not restricted.
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
