package drive

import (
	"slices"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/step"
	"kubeone/test/sim/world"
)

// What apply allows, in seconds.
const (
	lostTimeout    = 90
	clusterTimeout = 600
	etcdTimeout    = 120
)

// attempt is one running step, seen from its operator.
type attempt struct {
	op     *operator
	step   plan.Step
	phase  int
	began  int64
	lostAt int64 // when the connection broke for the first time; 0 is never
	call   world.Call
	safe   bool // etcd was asked whether the host may be stopped
}

func (a *attempt) by() world.Author {
	return world.Author{Run: a.op.run, Step: a.step.ID, Host: a.step.Host, Kind: a.step.Intent.Kind}
}

// move makes one command or request. A host that gave no lock is not touched.
func (a *attempt) move() (ended, ok bool) {
	if a.op.denied[a.step.Host] {
		return true, false
	}
	if a.step.Intent.Kind.OnHost() {
		return a.onHost()
	}
	return a.throughAPI()
}

// onHost is what apply does for a step on a host: its script, uploads, secrets, start, follow, and what success makes
// possible. A connection that is lost is made again, from the beginning.
func (a *attempt) onHost() (ended, ok bool) { //nolint:gocognit // one phase after the other
	w, h := a.op.sim.World, a.op.sim.World.Host(a.step.Host)
	kept, ended, ok := true, false, true
	switch a.phase {
	case 0: // the script
		if !a.op.sent[h.ID] {
			kept = a.op.command(h, func() { a.op.sent[h.ID] = true })
		}
	case 1: // files
		if len(a.step.Intent.Content().Uploads) > 0 {
			kept = a.op.command(h, func() { ended, ok = h.Full, !h.Full })
		}
	case 2: // secrets
		kept, ended, ok = a.secrets()
	case 3:
		if wait, failed := a.awaitEtcd(); wait || failed {
			return failed, false
		}
		if !a.op.mayBegin(true) {
			return w.Now-a.began > clusterTimeout, false
		}
		code := world.CodeDone
		kept = a.op.command(h, func() { code = w.Start(h, a.by(), a.op.locks[h.ID], a.step.Intent) })
		ended, ok = kept && code != world.CodeDone, code == world.CodeDone
	case 4:
		code, over := w.Ended(h)
		if !over {
			kept = h.Reached() && a.op.sim.breaks(h) == ""
			if kept {
				return false, true
			}
			break
		}
		kept = a.op.command(h, func() {})
		ended, ok = kept && code != world.CodeDone, code == world.CodeDone
	case 5:
		if a.step.Intent.Kind.CreatesControlPlane() {
			kept = a.op.command(h, func() {})
		}
		ended = kept
	}
	if kept {
		a.phase++
		return ended, ok
	}
	return a.lost()
}

// lost begins the attempt again, unless the host has been away for too long.
func (a *attempt) lost() (ended, ok bool) {
	now := a.op.sim.World.Now
	if a.lostAt == 0 {
		a.lostAt = now
	}
	a.phase, a.safe = 0, false
	return now-a.lostAt > lostTimeout, false
}

// secrets are those that the step may know: the PKI is read from a peer.
func (a *attempt) secrets() (kept, ended, ok bool) {
	from, copies := a.step.Intent.Params.(step.CopyPKIParams)
	if !copies {
		return true, false, true
	}
	peer := a.op.sim.World.Host(from.Peer)
	ok = true
	kept = a.op.command(peer, func() { ended, ok = peer.Disk.CA == 0, peer.Disk.CA != 0 })
	return kept, ended, ok
}

// throughAPI is a step that goes through the API or etcd: its client repeats requests until its time is over.
func (a *attempt) throughAPI() (ended, ok bool) {
	w := a.op.sim.World
	if a.call.Began == 0 {
		a.call.Began = w.Now
	}
	if wait, failed := a.awaitEtcd(); wait || failed {
		return failed, false
	}
	if !a.op.mayBegin(false) {
		return w.Now-a.began > clusterTimeout, false
	}
	if a.mustStay() {
		return true, false
	}
	done, err := w.Through(a.by(), a.step.Intent, &a.call, world.Digests{Manifest: a.op.sim.want.Digest, Addons: a.op.sim.addons})
	switch {
	case err != nil:
		return true, false
	case !done && w.Now-a.began > clusterTimeout:
		return true, false
	}
	return done, done
}

// awaitEtcd is what apply waits for before it drains a control-plane host, and before it opens one again.
func (a *attempt) awaitEtcd() (wait, failed bool) {
	in := a.step.Intent
	if in.Role != desired.ControlPlane || a.op.sim.Off == NoQuorum {
		return false, false
	}
	switch {
	case in.Guard() == step.MemberMayStop && !a.safe:
		wait = !mayStop(a.op.sim.World.ObserveEtcd(), in.NodeName)
		a.safe = !wait
	case in.Kind.Uncordons():
		wait = !allHealthy(a.op.sim.World.ObserveEtcd())
	}
	return wait, wait && a.op.sim.World.Now-a.began > etcdTimeout
}

// mustStay reports whether the member that the step removes must not leave, as etcd is now.
func (a *attempt) mustStay() bool {
	in, off := a.step.Intent, a.op.sim.Off
	leaves, removes := in.Params.(step.RemoveEtcdParams)
	if !removes || off == Removal || off == NoQuorum {
		return false
	}
	is := a.op.sim.World.ObserveEtcd()
	listed := slices.ContainsFunc(is.Members, func(m observed.Member) bool { return m.ID == leaves.Member })
	return listed && !quorum.SafeToRemove(is.Members, leaves.Member).Safe
}

func mayStop(e observed.Etcd, name string) bool {
	for _, m := range e.Members {
		if m.Name == name {
			return quorum.SafeToStop(e.Members, m.ID).Safe
		}
	}
	return false
}

func allHealthy(e observed.Etcd) bool {
	for _, m := range e.Members {
		if !m.Learner && m.Healthy != observed.Yes {
			return false
		}
	}
	return e.Reached == observed.Yes
}
