package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/retry"
)

// Timeouts for what is pending, and the interval between proposals.
const (
	SettleTimeout = time.Minute
	SettleEvery   = time.Second
	// HangTimeout is the timeout if only hosts that do not answer are pending and, after a replacement, for the rest of
	// the cluster. It allows two or three probes, because a probe of a host that does not answer takes several seconds.
	HangTimeout = 15 * time.Second
)

// Pending is something that is not ready yet and may become ready without a step, such as a host that is starting.
type Pending struct {
	Name string // a host, a component, "the API" or "etcd"; the name of the cluster if Why is Differs
	Why  Why
}

// Why says what is not ready.
type Why string

// The reasons why something is pending.
const (
	Silent     Why = "silent"      // the host does not answer although its Node is Ready: it is busy or hangs
	Starting   Why = "starting"    // the host answers and is not healthy yet
	Slow       Why = "slow"        // the API or etcd did not answer in time although a control-plane host is healthy
	NotRunning Why = "not running" // the component has no ready pod where it needs one
	Differs    Why = "differs"     // only after a run: there are still steps, which may disappear as components start
)

// Pending returns what is not ready yet and may still change the proposal. If it returns nothing, the proposal is
// final. err is the error that Propose returned with the proposal.
//
// Each type of request waits only for what can affect its plan:
//
//   - Apply covers the whole cluster: hosts, the API and etcd count and, if nothing else is left to do, components.
//   - RenewCertificates, RotateCA and Replace need healthy members. The host to replace does not count.
//   - Remove, Reset, and Replace of a lost host wait only after a refusal, which a member that is starting may end.
//   - Recover, Snapshots and Worker do not wait. Recover is for hosts that are down.
//   - A host that hangs counts only if a step depends on it, or the request was refused.
//   - After an error other than *ConfigError, nothing counts.
func (p Proposal) Pending(err error) []Pending {
	var refused *ConfigError
	if err != nil && !errors.As(err, &refused) {
		return nil
	}
	var pending []Pending
	switch r := p.Request.(type) {
	case Apply:
		pending = p.pendingComponents()
	case RenewCertificates, RotateCA:
		pending = p.unreadyMembers()
	case Replace:
		if err != nil || !r.HostGone {
			pending = p.unreadyMembers()
		}
		if own := p.NameOf(p.who.IDs.Of(r.Host)); err == nil {
			pending = slices.DeleteFunc(pending, func(o Pending) bool { return o.Name == own })
		}
	case Reset, Remove:
		if err != nil {
			pending = p.unreadyMembers()
		}
	}
	if err == nil {
		pending = slices.DeleteFunc(pending, func(o Pending) bool {
			return o.Why == Silent && p.canIgnoreHanging(o.Name)
		})
	}
	return pending
}

// pendingAfter returns what the end of a run must wait for. p is a proposal made after the run, approved is the
// proposal that the operator approved, and waited is the time since the run. The approved plan tells which result to
// expect. The proposal made just before the run does not, because a host that was not ready may have affected it.
func (p Proposal) pendingAfter(approved Proposal, waited time.Duration) []Pending {
	pending := p.pendingComponents()
	var differs []Pending
	if !p.Matches() {
		differs = []Pending{{p.Want.Name, Differs}}
	}
	switch r := approved.Request.(type) {
	case Apply:
		switch {
		case len(approved.Plan.Operator) > 0 && waited >= HangTimeout && hasOnlySilentHosts(pending):
			return nil // the operator must act anyway, and the hosts do not answer
		case len(approved.Plan.Operator) > 0 || !approved.Plan.Complete():
			return pending // steps were expected to remain
		}
		return append(pending, differs...) // no steps should remain
	case Recover:
		// No steps should remain, except those that waiting cannot remove.
		if len(pending) == 0 && p.cannotSettle() {
			return nil
		}
		return append(pending, differs...)
	case RenewCertificates, RotateCA:
		// The next part of the work is blocked only until the members are ready.
		if p.Plan.Blocked != "" {
			return append(pending, Pending{p.Want.Name, Differs})
		}
		return pending
	case Replace:
		switch {
		case !r.HostGone && waited >= HangTimeout:
			return pending // steps may remain for the rest of the cluster
		case !r.HostGone:
			return append(pending, differs...)
		}
	}
	// The pods of a removed host must start on other hosts.
	if removesHost(approved.Request) && len(p.Plan.Steps) == 0 {
		return p.componentsNotRunning()
	}
	return nil
}

// cannotSettle reports whether waiting cannot change the proposal: an operator must act, or the remaining steps do not
// repair anything that may still be starting.
func (p Proposal) cannotSettle() bool {
	switch p.Decision().Route {
	case fsm.MoveEndpoint, fsm.Upgrade, fsm.Reconfigure, fsm.Encrypt, fsm.Resources:
		return true
	default:
		return len(p.Plan.Operator) > 0
	}
}

// pendingComponents returns all members that are not ready and, if there is nothing left to do, the components that are
// not running.
func (p Proposal) pendingComponents() []Pending {
	pending := p.unreadyMembers()
	if len(p.Decisions) > 0 && p.Matches() {
		pending = append(pending, p.componentsNotRunning()...)
	}
	return pending
}

// unreadyMembers returns everything that is not ready except components: hosts, comparisons, the API and etcd.
func (p Proposal) unreadyMembers() []Pending {
	if len(p.Decisions) == 0 {
		return nil
	}
	var pending []Pending
	ready, world := p.readyNodes(), p.Observed.World
	for _, h := range p.Want.Hosts() {
		if world.Hosts[h.ID].Reach == observed.Unreachable && ready[p.nodeOf(h)] {
			pending = append(pending, Pending{p.NameOf(h.ID), Silent})
		}
	}
	d := p.Decision()
	for _, id := range d.ComingUp {
		pending = append(pending, Pending{p.NameOf(id), Starting})
	}
	for _, name := range slices.Sorted(maps.Keys(world.API.Compared)) {
		if world.API.Compared[name].Late {
			pending = append(pending, Pending{name, Slow})
		}
	}
	healthy := slices.ContainsFunc(p.Want.ControlPlane, func(h desired.Host) bool {
		return d.Hosts[h.ID].Condition == condition.Healthy
	})
	if healthy && world.API.Reached == observed.No {
		pending = append(pending, Pending{"the API", Slow})
	}
	if healthy && world.Etcd.Reached == observed.No {
		pending = append(pending, Pending{"etcd", Slow})
	}
	return pending
}

// readyNodes returns the names of the Ready Nodes.
func (p Proposal) readyNodes() map[string]bool {
	ready := map[string]bool{}
	for _, n := range p.Observed.World.API.Nodes {
		ready[n.Name] = ready[n.Name] || n.Ready == observed.Yes
	}
	return ready
}

// componentsNotRunning returns cluster DNS and the network components that are not running on the hosts of the request.
// Components on other Nodes, such as those of Machines, do not count.
func (p Proposal) componentsNotRunning() []Pending {
	about := map[string]bool{}
	r, limited := p.Request.(Apply)
	for _, h := range p.Want.Hosts() {
		if !limited || r.Limit == nil || r.Limit[h.ID] {
			about[p.nodeOf(h)] = true
		}
	}
	var pending []Pending
	for _, a := range decide.NotRunning(p.Want.Network, p.Observed.World.API) {
		anywhere := len(a.Nodes) == 0
		a.Nodes = slices.DeleteFunc(a.Nodes, func(node string) bool { return !about[node] })
		if anywhere || len(a.Nodes) > 0 {
			pending = append(pending, Pending{a.String(), NotRunning})
		}
	}
	return pending
}

// canIgnoreHanging reports whether the host with the given name hangs and no step depends on it. Waiting for such a
// host is useless: a host that misses the handshake timeout rarely recovers within seconds.
func (p Proposal) canIgnoreHanging(name string) bool {
	for _, h := range p.Want.Hosts() {
		if p.NameOf(h.ID) != name || p.Observed.World.Hosts[h.ID].Class != observed.ClassHanging {
			continue
		}
		if h.Role == desired.ControlPlane { // whether a step may run depends on all members
			return len(p.Plan.Steps) == 0 && p.Plan.Blocked == ""
		}
		return !slices.ContainsFunc(p.Plan.Steps, func(s plan.Step) bool { return s.Host == h.ID })
	}
	return false
}

// hasOnlySilentHosts reports whether nothing is pending except hosts that do not answer. It returns true for an empty
// list.
func hasOnlySilentHosts(pending []Pending) bool {
	return !slices.ContainsFunc(pending, func(o Pending) bool { return o.Why != Silent })
}

// ProposeUntilReady proposes again while something is pending, starting with the first proposal, and returns the last
// proposal and its error. It stops after the timeout, or after HangTimeout if only hosts that do not answer are
// pending. If nothing is pending in the first proposal, it returns its arguments; otherwise it calls waiting once.
func (e *Engine) ProposeUntilReady(ctx context.Context, first Proposal, err error, timeout time.Duration,
	waiting func(pending []Pending, timeout time.Duration)) (Proposal, error) {
	pending := first.Pending(err)
	if len(pending) == 0 {
		return first, err
	}
	if hasOnlySilentHosts(pending) {
		timeout = min(timeout, HangTimeout)
	}
	waiting(pending, timeout)
	return e.proposeUntil(ctx, first.Request, timeout, func(p Proposal, _ time.Duration) []Pending {
		return p.Pending(nil)
	}, func(Proposal, []Pending) {})
}

// proposeUntil proposes at least once, until nothing is pending or the timeout has passed. It calls pending with each
// successful proposal and the time since the start, and waiting before each further proposal.
func (e *Engine) proposeUntil(ctx context.Context, r Request, timeout time.Duration,
	pending func(p Proposal, waited time.Duration) []Pending, waiting func(Proposal, []Pending)) (Proposal, error) {
	began := e.cfg.Now()
	for {
		p, err := e.Propose(ctx, r)
		waited := e.cfg.Now().Sub(began)
		remaining := p.Pending(err)
		if err == nil {
			remaining = pending(p, waited)
		}
		if len(remaining) == 0 || waited > timeout {
			return p, err
		}
		waiting(p, remaining)
		if !retry.Pause(ctx, SettleEvery) {
			return p, ctx.Err()
		}
	}
}
