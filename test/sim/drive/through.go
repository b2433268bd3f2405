package drive

import (
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/observed"
	"kubeone/internal/step"
	"kubeone/test/sim/world"
)

// The steps through the API and etcd that take more than one request, as apply makes them.

// drain empties a Node. One whose pods do not leave is opened again, so that nothing is lost by having tried.
func (a *attempt) drain() progress {
	if !a.blocked {
		within := drain.Limit(time.Duration(step.ParamsOf[step.DrainNodeParams](a.step.Intent).TimeoutSeconds) *
			time.Second)
		switch got := a.request(); {
		case got == passed:
			return passed
		case got == waiting && a.now()-a.call.Began <= int64(within/time.Second):
			return waiting
		}
		a.blocked = true
	}
	if w := a.op.sim.World; w.APIReached() {
		w.Uncordon(a.by(), a.step.Intent.NodeName)
		return failed
	}
	if a.expired("reopening", uncordonTimeout) {
		return failed
	}
	return waiting
}

// uncordon waits for the Node in the wanted version, then for etcd, and opens the Node.
func (a *attempt) uncordon() progress {
	switch in := a.step.Intent; a.phase {
	case 0:
		upgraded := func(n *world.Node) bool { return n != nil && n.Ready && n.Kubelet == in.Version }
		if !a.op.sim.World.NodeIs(in.NodeName, upgraded) {
			return waiting
		}
		a.phase++
		fallthrough
	case 1:
		if is := a.etcdIs(apply.BeforeUncordon(in)); is != passed {
			return is
		}
		a.phase++
	}
	return a.request()
}

// removeMember takes a member out, one that is to be dead after it was found so.
func (a *attempt) removeMember() progress {
	params := step.ParamsOf[step.RemoveEtcdParams](a.step.Intent)
	if params.Confirm {
		if dead := a.confirmed(params.Death, params.Member); dead != passed {
			return dead
		}
	}
	seen := a.op.sim.World.ObserveEtcd()
	if seen.Reached != observed.Yes {
		return failed
	}
	listed, err := apply.MayLeave(seen, params)
	switch off := a.op.sim.Off; {
	case !listed:
		return passed
	case err != nil && off != Removal && off != NoQuorum:
		return failed
	}
	return when(a.request() == passed) // and not again: etcd's client does not repeat it
}

// deleteNode deletes a Node, one that is to be dead after its host was found so, and after it has ceased to report.
func (a *attempt) deleteNode() progress {
	if death := step.ParamsOf[step.DeleteNodeParams](a.step.Intent).Death; death.Confirm {
		if death.Peer != "" {
			if dead := a.confirmed(death, ""); dead != passed {
				return dead
			}
		}
		if !a.op.sim.World.NodeIs(a.step.Intent.NodeName, func(n *world.Node) bool { return n == nil || !n.Ready }) {
			if a.expired("silence", nodeTimeout) {
				return failed
			}
			return waiting
		}
	}
	return a.request()
}

// confirmed looks again and again whether what is to be removed is dead. Every sign of life is a failure, and
// so is what cannot be found out.
func (a *attempt) confirmed(of step.Death, member string) progress {
	now := instant(a.now())
	switch {
	case a.silence.Dead():
		return passed
	case !a.silence.Last.IsZero() && now.Sub(a.silence.Last) < apply.DeathEvery:
		return waiting
	}
	if member != "" {
		seen := a.op.sim.World.ObserveEtcd()
		if seen.Reached != observed.Yes || apply.FoundDead(seen, member) != nil {
			return failed
		}
	}
	if h := a.op.sim.World.Host(of.Peer); h != nil && a.lives(h) {
		return failed
	}
	if a.silence = a.silence.Found(now, now); a.silence.Dead() {
		return passed
	}
	return waiting
}

// lives reports whether a host that did not answer when the plan was made does now, or one that did has what is
// to be removed.
func (a *attempt) lives(h *world.Host) bool {
	answered := a.op.approved.Hosts[h.ID].Reach == observed.Reached
	alive := false
	a.op.command(h, func() { alive = !answered || h.Run.Etcd || h.Disk.Data != nil })
	return alive
}
