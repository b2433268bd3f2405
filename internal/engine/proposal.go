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

// Proposal is what a Request leads to in the world as it was observed. It is a value: nothing is changed by it, and it
// is not changed by CarryOut.
type Proposal struct {
	Request   Request
	Want      desired.Cluster   // the cluster as it is wanted, with its hosts where their machines were found
	Observed  probe.Result      // by the IDs of Want's hosts; it holds secrets
	Decisions []decide.Decision // the first is about the world as it is, the others about predicted ones
	Plan      plan.Plan
	Scripts   map[string]string // by host ID, of the hosts that the plan touches
	Took      time.Duration

	who        identity.Result // which machine is which host
	unresolved error           // why it is not known what some host would be given; nil if all is known
}

// Decision is what the state machine said about the world as it is.
func (p Proposal) Decision() decide.Decision { return p.Decisions[0] }

// Refusal is why CarryOut would refuse the proposal, whatever the world is by then: a *BlockedError, an
// *UnresolvedError, or a *ConfigError where the request does not allow what the cluster needs. It is nil if nothing
// is in the way.
func (p Proposal) Refusal() error {
	if r, ok := p.Request.(interface{ whyRefused(p Proposal) error }); ok {
		if err := r.whyRefused(p); err != nil {
			return err
		}
	}
	return p.Unresolved()
}

// Unresolved is an *UnresolvedError where it is not known what the plan would install; such a plan has no digest.
func (p Proposal) Unresolved() error {
	if p.unresolved == nil {
		return nil
	}
	return &UnresolvedError{p.unresolved}
}

// Matches reports whether the cluster was as it is wanted.
func (p Proposal) Matches() bool { return p.Plan.Empty() && p.Decision().Route != fsm.Error }

// RunningSteps are the hosts, by ID, on which a step of an earlier run still runs.
func (p Proposal) RunningSteps() map[string]observed.Step {
	out := map[string]observed.Step{}
	for id, h := range p.Observed.World.Hosts {
		if h.Step != nil {
			out[id] = *h.Step
		}
	}
	return out
}

// NameOf is how the host with that ID is called, also where there is no plan.
func (p Proposal) NameOf(id string) string {
	if name := p.Plan.Hosts[id]; name != "" {
		return name
	}
	h, _ := p.Want.Host(id)
	return cmp.Or(h.Hostname, id)
}

// NodeOf is the name of the host's Node, also where there is no plan; its ID where that is not known.
func (p Proposal) NodeOf(id string) string {
	h, _ := p.Want.Host(id)
	h.ID = id // it may have been named by an address
	return p.nodeOf(h)
}

func (p Proposal) nodeOf(h desired.Host) string {
	node := cmp.Or(p.Plan.Nodes[h.ID], strings.ToLower(h.Hostname))
	if len(p.Decisions) > 0 {
		node = cmp.Or(node, p.Decision().Hosts[h.ID].Node)
	}
	return cmp.Or(node, h.ID)
}

// whyChanged returns why the approved request is refused now. While something is pending, the request is no mistake:
// the world has changed.
func (p Proposal) whyChanged(refused error) error {
	if len(p.Pending(refused)) > 0 {
		return fmt.Errorf("%w: now %s", ErrWorldChanged, refused.Error())
	}
	return refused
}
