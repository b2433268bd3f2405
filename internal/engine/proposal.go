package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// Proposal is the result of a Request in the observed world. It is a value that CarryOut does not change.
type Proposal struct {
	Request   Request
	Want      desired.Cluster   // the desired cluster, with its hosts where their machines were found
	Observed  probe.Result      // by the IDs of Want's hosts; it holds secrets
	Decisions []decide.Decision // the first about the observed world, the others about predicted ones
	Plan      plan.Plan
	Scripts   map[string]string // by host ID, of the hosts that the plan touches
	Took      time.Duration

	who        identity.Result // which machine is which host
	unresolved error           // why some artifacts are unknown; nil if all are known
}

// Decision returns the decision about the observed world.
func (p Proposal) Decision() decide.Decision { return p.Decisions[0] }

// Refusal returns why CarryOut would refuse the proposal regardless of later changes: a *BlockedError, an
// *UnresolvedError, or a *ConfigError if the request does not allow what the cluster needs. It is nil if nothing is
// in the way.
func (p Proposal) Refusal() error {
	if r, ok := p.Request.(interface{ whyRefused(p Proposal) error }); ok {
		if err := r.whyRefused(p); err != nil {
			return err
		}
	}
	return p.Unresolved()
}

// Unresolved returns an *UnresolvedError if some artifacts of the plan are unknown; such a plan has no digest.
func (p Proposal) Unresolved() error {
	if p.unresolved == nil {
		return nil
	}
	return &UnresolvedError{p.unresolved}
}

// Matches reports whether the cluster was in its desired state.
func (p Proposal) Matches() bool { return p.Plan.Empty() && p.Decision().Route != fsm.Error }

// RunningSteps returns the hosts, by ID, that still run a step of an earlier run.
func (p Proposal) RunningSteps() map[string]observed.Step {
	out := map[string]observed.Step{}
	for id, h := range p.Observed.World.Hosts {
		if h.Step != nil {
			out[id] = *h.Step
		}
	}
	return out
}

// NameOf returns the display name of the host with that ID, even without a plan.
func (p Proposal) NameOf(id string) string {
	if name := p.Plan.Hosts[id]; name != "" {
		return name
	}
	h, _ := p.Want.Host(id)
	return cmp.Or(h.Hostname, id)
}

// NodeOf returns the name of the host's Node, even without a plan; its ID if that is unknown.
func (p Proposal) NodeOf(id string) string {
	h, _ := p.Want.Host(id)
	h.ID = id // the manifest may name it by an address
	return p.nodeOf(h)
}

func (p Proposal) nodeOf(h desired.Host) string {
	node := cmp.Or(p.Plan.Nodes[h.ID], strings.ToLower(h.Hostname))
	if len(p.Decisions) > 0 {
		node = cmp.Or(node, p.Decision().Hosts[h.ID].Node)
	}
	return cmp.Or(node, h.ID)
}

// whyChanged returns why the approved request is refused now. While something is pending, the cause is a changed
// world, not a mistake in the request.
func (p Proposal) whyChanged(refused error) error {
	if len(p.Pending(refused)) > 0 {
		return fmt.Errorf("%w: now %s", ErrWorldChanged, refused.Error())
	}
	return refused
}
