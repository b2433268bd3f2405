package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/identity"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/problem"
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
	if r, ok := p.Request.(interface{ refusal(p Proposal) error }); ok {
		if err := r.refusal(p); err != nil {
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

// stays reports whether something remains that waiting does not change: a person has to act, or what is left for apply
// is no repair of what may be coming up.
func (p Proposal) stays() bool {
	if len(p.ComingUp()) > 0 {
		return false
	}
	switch p.Decision().Route {
	case fsm.MoveEndpoint, fsm.Upgrade, fsm.Reconfigure, fsm.Encrypt, fsm.Resources:
		return true
	default:
		return len(p.Plan.Operator) > 0
	}
}

// settled reports whether the proposal was carried out as far as waiting tells, by one that was made so long after its
// run. Where a person has to act, no waiting changes that; what may only be late need not be among it.
func (p Proposal) settled(after Proposal, waited time.Duration) bool {
	switch {
	case len(p.Plan.Operator) > 0:
		return waited >= HangTimeout && after.AllSilent(after.ComingUp()) || isUp(after)
	case !p.Plan.Complete():
		return isUp(after)
	}
	return after.Matches() && isUp(after)
}

// replaced is settled for the proposal of the whole cluster after one of its hosts was replaced. What was to be done
// elsewhere before is still to be done.
func replaced(after Proposal, waited time.Duration) bool {
	return isUp(after) && (after.Matches() || waited >= HangTimeout)
}

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

// ComingUp returns what a look after a run waits for: what may only have been late (MayBeLate) and, where the cluster
// is otherwise as it is wanted, the components that are awaited.
func (p Proposal) ComingUp() []string {
	names := p.MayBeLate()
	if len(p.Decisions) > 0 && p.Matches() {
		names = append(names, p.awaited()...)
	}
	return names
}

// mostNamed is how many Nodes are named on which a component does not run.
const mostNamed = 5

// NotRunning names the components that do not run where they must (decide.NotRunning): "cluster DNS", "kube-proxy on
// cp-1 and cp-2".
func (p Proposal) NotRunning() []string { return p.notRunning(func(string) bool { return true }) }

// awaited are those of them for which a run waits: cluster DNS, and what does not run on hosts that the request is
// about. Of another Node, say a Machine's, it is named that something does not run there, and nobody waits for it.
func (p Proposal) awaited() []string {
	about := map[string]bool{}
	r, limited := p.Request.(Apply)
	for _, h := range p.Want.Hosts() {
		if !limited || r.Limit == nil || r.Limit[h.ID] {
			about[p.nodeOf(h)] = true
		}
	}
	return p.notRunning(func(node string) bool { return about[node] })
}

// notRunning names what does not run, as far as that is on Nodes that count.
func (p Proposal) notRunning(counts func(node string) bool) []string {
	var names []string
	for _, a := range decide.NotRunning(p.Want.Network, p.Observed.World.API) {
		if len(a.Nodes) == 0 {
			names = append(names, a.Component)
			continue
		}
		nodes := slices.DeleteFunc(a.Nodes, func(node string) bool { return !counts(node) })
		if len(nodes) > 0 {
			names = append(names, a.Component+" on "+problem.List(problem.Some(nodes, mostNamed)))
		}
	}
	return names
}

// MayBeLate returns the names of members that answer, are not healthy, and may become so by themselves, and what else
// may only have been late when it was looked at: the API or etcd, where a control-plane host is healthy by its own
// word, components that the API was too slow to compare, and the silent hosts.
func (p Proposal) MayBeLate() []string {
	if len(p.Decisions) == 0 {
		return nil
	}
	names := p.Silent()
	d := p.Decision()
	for _, id := range d.ComingUp {
		names = append(names, p.NameOf(id))
	}
	compared := p.Observed.World.API.Compared
	for _, name := range slices.Sorted(maps.Keys(compared)) {
		if compared[name].Late {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(p.Want.ControlPlane, func(h desired.Host) bool {
		return d.Hosts[h.ID].Condition == condition.Healthy
	}) {
		return names
	}
	if p.Observed.World.API.Reached == observed.No {
		names = append(names, "the API")
	}
	if p.Observed.World.Etcd.Reached == observed.No {
		names = append(names, "etcd")
	}
	return names
}

// AllSilent reports whether these names are of silent hosts alone, for which one waits less long (HangTimeout).
func (p Proposal) AllSilent(names []string) bool {
	silent := p.Silent()
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(silent, name) })
}

// withoutHanging leaves out the silent hosts that hang and on which no step of the plan depends. A host that does not
// finish the handshake in its time is not ready a few seconds later either, and the plan names it as it is.
func (p Proposal) withoutHanging(late []string) []string {
	about := map[string]bool{}
	for _, s := range p.Plan.Steps {
		about[s.Host] = true
	}
	hanging := map[string]bool{} // by name
	for _, h := range p.Want.Hosts() {
		depends := about[h.ID]
		if h.Role == desired.ControlPlane { // whether a step may run depends on how the members are
			depends = len(p.Plan.Steps) > 0 || p.Plan.Blocked != ""
		}
		if p.Observed.World.Hosts[h.ID].Class == observed.ClassHanging && !depends {
			hanging[p.NameOf(h.ID)] = true
		}
	}
	return slices.DeleteFunc(late, func(name string) bool { return hanging[name] })
}

// Silent returns the names of hosts that did not answer although their kubelets report that they are ready: a busy host
// may need longer than it is given to begin a conversation. Of one that hangs or is gone the API says so before long.
func (p Proposal) Silent() []string {
	ready := map[string]bool{} // by the Node's name
	for _, n := range p.Observed.World.API.Nodes {
		ready[n.Name] = ready[n.Name] || n.Ready == observed.Yes
	}
	var names []string
	for _, h := range p.Want.Hosts() {
		if p.Observed.World.Hosts[h.ID].Reach == observed.Unreachable && ready[p.nodeOf(h)] {
			names = append(names, p.NameOf(h.ID))
		}
	}
	return names
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

// MayChange reports whether another look may lead to another proposal, as something may only have been late (Late).
func (p Proposal) MayChange(err error) bool { return len(p.Late(err)) > 0 }

// changed is why what was approved is refused now. Where somebody may only be late, it is the world that has changed,
// and the request is no mistake.
func (p Proposal) changed(refused error) error {
	if p.MayChange(refused) {
		return fmt.Errorf("%w: now %s", ErrWorldChanged, refused.Error())
	}
	return refused
}

// Late returns the names of what may only have been late when it was looked at (MayBeLate), as far as the proposal
// depends on that. A host that hangs is not late, unless a step depends on it or the request was refused. A change of
// the whole cluster goes by how its members are, and so does a join, of all but the one that is replaced. A removal
// does not, unless it was refused. A recovery is for what is down, and waits for nothing. That a cluster simply matches
// is not said before its components had that time, too (ComingUp). The error is the one that Propose returned.
func (p Proposal) Late(err error) []string {
	var refused *ConfigError
	switch {
	case err == nil:
		return p.withoutHanging(p.lateFor(nil))
	case errors.As(err, &refused):
		return p.lateFor(err)
	}
	return nil
}

// lateFor is Late, with the hosts that hang.
func (p Proposal) lateFor(err error) []string {
	switch r := p.Request.(type) {
	case Apply:
		return p.ComingUp()
	case RenewCertificates, RotateCA:
		return p.MayBeLate()
	case Replace:
		if err == nil && r.Gone {
			return nil
		}
		if err == nil {
			own := p.NameOf(p.who.IDs.Of(r.Host))
			return slices.DeleteFunc(p.MayBeLate(), func(name string) bool { return name == own })
		}
		return p.MayBeLate()
	case Reset, Remove:
		if err != nil {
			return p.MayBeLate()
		}
	}
	return nil
}
