package engine

import (
	"context"

	"kubeone/internal/decide"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// NodeChange is what is to become of one host of a living cluster.
type NodeChange struct {
	Host    string // as a person calls it: its name or an address
	Replace bool   // it joins again after it has left
	Gone    bool   // it does not answer and never will: only its etcd member and its Node are removed
}

// LookNode probes and plans how the host leaves the cluster, or leaves and joins it again. What must not be done is a
// *ConfigError.
func (e *Engine) LookNode(ctx context.Context, c NodeChange) (Look, error) {
	h, err := e.named(c.Host, "HOST")
	if err != nil {
		return Look{}, err
	}
	result, err := e.probe(ctx)
	if err != nil {
		return Look{}, err
	}
	if arch := result.World.Hosts[h.ID].Arch; c.Replace && !c.Gone && arch != "" {
		if err := e.artifacts(ctx, []string{arch}); err != nil {
			return Look{}, err
		}
	}
	in := decide.Input{Want: e.want, Is: result.World, Config: e.configDigests(), Addons: e.addonOf}
	planned := plan.RemoveNode
	if c.Replace {
		planned = plan.ReplaceNode
	}
	p, err := planned(in, h.ID, c.Gone)
	if err != nil {
		return Look{}, &ConfigError{err}
	}
	l := Look{Result: result, Plan: p, Decisions: []decide.Decision{decide.Decide(in)}}
	if l.Scripts, err = e.scripts(p, result.World); err != nil {
		return Look{}, err
	}
	plan.Sign(&l.Plan, digests(l.Scripts))
	return l, nil
}

// ChangeNode carries out the plan of an approved LookNode. A host that was removed is bare afterwards.
func (e *Engine) ChangeNode(ctx context.Context, c NodeChange, approved Look, o ApplyOptions) error {
	now, err := e.carryOut(ctx, approved, o, func(ctx context.Context) (Look, error) { return e.LookNode(ctx, c) })
	if err != nil || c.Replace {
		return err
	}
	return e.forget(ctx, now)
}

// absent are the hosts that did not answer and of which a step wants to be sure that they are dead.
func (e *Engine) absent(p plan.Plan, w observed.World) map[string]host.Host {
	out := map[string]host.Host{}
	for _, s := range p.Steps {
		if peer := s.Intent.Peer; s.Intent.Confirm && peer != "" && w.Hosts[peer].Reach != observed.Reached {
			out[peer] = e.hosts[peer]
		}
	}
	return out
}
