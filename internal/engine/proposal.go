package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/addons/chart"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// Proposal is the plan for a Request in the observed world, and everything it is based on. CarryOut does not change it.
type Proposal struct {
	Request   Request
	Want      desired.Cluster   // the desired cluster; hosts have the addresses at which their machines were found
	Observed  probe.Result      // by the IDs of Want's hosts; it holds secrets
	Decisions []decide.Decision // the first is about the observed world, the others about predicted ones
	Plan      plan.Plan
	Scripts   map[string]string // by host ID, for the hosts that the plan changes
	Took      time.Duration

	charts     map[string]chart.Chart // that the plan installs, by the key of their Helm release
	who        identity.Result        // which machine is which host
	unresolved error                  // why digests of some artifacts are unknown; nil if all are known
}

// Decision returns the decision about the observed world.
func (p Proposal) Decision() decide.Decision { return p.Decisions[0] }

// Refusal returns the error with which CarryOut would refuse the proposal even if nothing changed, or nil if it would
// not. The error is a *BlockedError, an *UnresolvedError, or a *ConfigError if the request does not allow what the
// cluster needs.
func (p Proposal) Refusal() error {
	if r, ok := p.Request.(interface{ whyRefused(p Proposal) error }); ok {
		if err := r.whyRefused(p); err != nil {
			return err
		}
	}
	return p.Unresolved()
}

// Unresolved returns an *UnresolvedError if digests of some artifacts of the plan are unknown, and nil otherwise. A
// plan with unknown digests cannot be approved in advance, because it has no digest itself.
func (p Proposal) Unresolved() error {
	if p.unresolved == nil {
		return nil
	}
	return &UnresolvedError{p.unresolved}
}

// Matches reports whether the cluster was in its desired state.
func (p Proposal) Matches() bool { return p.Plan.Empty() && p.Decision().Route != fsm.Error }

// RunningSteps returns the steps of earlier runs that are still running, by host ID.
func (p Proposal) RunningSteps() map[string]observed.Step {
	out := map[string]observed.Step{}
	for id, h := range p.Observed.World.Hosts {
		if h.Step != nil {
			out[id] = *h.Step
		}
	}
	return out
}

// NameOf returns the display name of the host with that ID. It also works without a plan.
func (p Proposal) NameOf(id string) string {
	if name := p.Plan.Hosts[id]; name != "" {
		return name
	}
	h, _ := p.Want.Host(id)
	return cmp.Or(h.Hostname, id)
}

// NodeOf returns the Node name of the host with that ID, or the ID if the name is unknown. It also works without a
// plan.
func (p Proposal) NodeOf(id string) string {
	h, _ := p.Want.Host(id)
	h.ID = id // the manifest may identify the host by an address
	return p.nodeOf(h)
}

func (p Proposal) nodeOf(h desired.Host) string {
	node := cmp.Or(p.Plan.Nodes[h.ID], strings.ToLower(h.Hostname))
	if len(p.Decisions) > 0 {
		node = cmp.Or(node, p.Decision().Hosts[h.ID].Node)
	}
	return cmp.Or(node, h.ID)
}

// whyChanged returns the error for an approved request that is refused now. While something is pending, it wraps
// ErrWorldChanged, because the world has changed and the request is not at fault.
func (p Proposal) whyChanged(refused error) error {
	if len(p.Pending(refused)) > 0 {
		return fmt.Errorf("%w: now %s", ErrWorldChanged, refused.Error())
	}
	return refused
}
