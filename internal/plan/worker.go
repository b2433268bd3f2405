package plan

import (
	"errors"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// Worker decides and plans for one worker that is a Machine, as Build does for a cluster. It also returns the
// decisions, in order.
func Worker(in decide.WorkerInput) (Plan, []decide.Decision) {
	in.About = map[string]bool{in.Want.Workers[0].ID: true}
	b := newBuilder(in.Input)
	var decisions []decide.Decision
	for len(decisions) < maxRoutes {
		next := in
		next.Is, next.CA = b.world.Is, b.world.CA
		d := decide.Worker(next)
		decisions = append(decisions, d)
		if !b.followWorker(d) {
			break
		}
	}
	if err := errors.Join(b.refused...); err != nil {
		return Plan{
			Format: FormatVersion, Cluster: b.plan.Cluster, Routes: b.plan.Routes, Hosts: b.names, Nodes: b.plan.Nodes,
			Blocked: err.Error(),
		}, decisions
	}
	b.revokeTokens()
	for _, w := range decisions[0].Warnings {
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, w))
	}
	return b.plan, decisions
}

// followWorker plans one route of a worker and returns whether another one may follow.
func (b *builder) followWorker(d decide.Decision) bool {
	if d.Route != fsm.Nothing || len(b.plan.Routes) == 0 {
		b.plan.Routes = append(b.plan.Routes, string(d.Route))
	}
	h := b.in.Want.Workers[0]
	switch d.Route {
	case fsm.Join:
		b.addJoinSteps(d)
	case fsm.Repair:
		b.repairHosts(d)
	case fsm.Upgrade:
		b.upgradeHosts(d)
	case fsm.Reconfigure:
		b.reconfigureHosts(d)
	case fsm.Resources:
		b.applyResources(d)
	case fsm.Return:
		b.giveBack()
	case fsm.Abandon:
		b.deleteNode(h, "its host does not answer, and the wait has timed out", nil,
			step.Death{Peer: h.ID, Confirm: true})
	case fsm.Wait, fsm.Error:
		b.plan.Again = strings.Join(problem.Texts(d.Problems), "; ")
		return false
	default: // nothing
		return false
	}
	return len(b.refused) == 0
}

// giveBack plans that the worker leaves the cluster and its host becomes bare. Its Node is deleted last: after a reset
// that was interrupted, only the Node is left.
func (b *builder) giveBack() {
	h, before := b.in.Want.Workers[0], len(b.plan.Steps)
	if err := b.resetHost(h, false); err != nil {
		b.refused = append(b.refused, err)
		return
	}
	if _, found := b.findNode(h); found && len(b.plan.Steps) == before {
		b.deleteNode(h, "its host is bare", nil, step.Death{})
	}
}
