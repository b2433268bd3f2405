package drive

import (
	"slices"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/internal/step"
	"kubeone/test/sim/world"
)

// lookGap is the longest time between two looks at a Lease that counts, in seconds.
const lookGap = 4

// tenure is what an operator knows of the cluster's Lease.
type tenure struct {
	mine    bool
	renewed int64 // when it was last known to be ours
	// While it is another's: what it said, when that was last looked at, and for how long it has been silent.
	other  world.Lease
	looked int64
	silent int64
}

// setReachable makes the world what this operator reaches of it.
func (o *operator) setReachable() {
	for _, h := range o.sim.World.Hosts {
		h.Hidden = h.Part != 0 && h.Part != 2-o.number%2
		h.Outside = !o.file.has[h.ID] && !o.isFor(h)
	}
}

// seen is what the operator sees and plans now.
func (o *operator) seen() look {
	if o.machine != nil {
		return o.sim.lookAtMachine(o.machine)
	}
	if o.alone == "" && o.request.command == applyAll {
		return o.sim.lookFor(o.file)
	}
	l := o.requested()
	if o.alone == "" {
		return l
	}
	l.plan = aloneWith(l.plan, l.who.IDs.Of(o.alone))
	return l
}

// aloneWith is the plan without the record of the manifest, which is not for a caller that works on one worker.
func aloneWith(p plan.Plan, id string) plan.Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool {
		return s.Intent.Kind == step.SaveRecord
	})
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Host == id }) {
		p.Steps = nil
	}
	return p
}

// leaseFirst takes the Lease before the first step, if the plan is about the cluster and an API answers.
func (o *operator) leaseFirst() {
	recovers := o.request.command == recoverCluster // what still answers is not the cluster that will be
	if !o.old && !o.scope.Cluster || recovers || !o.sim.World.APIReached() {
		o.state = lookingAgain
		return
	}
	switch taken, held := o.takeLease(); {
	case taken:
		o.state = lookingAgain
	case held:
		o.finish(Held)
	}
}

// takeLease takes the Lease if it is free, if every control-plane host is still locked by this run, so that no
// other one is alive, or if it was silent for long enough. Neither taken nor held means that it must be looked
// at again.
func (o *operator) takeLease() (taken, held bool) {
	w, t := o.sim.World, &o.lease
	now := w.EtcdCluster().Objects.Lease
	switch {
	case o.old || o.force:
		w.TakeLease(o.run, true)
	case now.Run == "" || now.Run == o.run, o.lockedAll(), o.sim.Off == LeaseByForce, o.silent(now):
		w.TakeLease(o.run, false)
	default:
		return false, t.other.Run != "" && t.other != now
	}
	*t = tenure{mine: true, renewed: w.Now}
	return true, false
}

// silent reports whether another run's Lease was not renewed for as long as it holds. Only time in which it
// could have been counts: that between two looks which follow closely.
func (o *operator) silent(now world.Lease) bool {
	w, t := o.sim.World, &o.lease
	switch {
	case t.other.Run == "":
		t.other, t.silent = now, 0
	case t.other != now:
		return false
	default:
		t.silent += min(w.Now-t.looked, lookGap)
	}
	t.looked = w.Now
	return t.silent >= leaseDuration
}

// renew renews the Lease, where the API answers.
func (o *operator) renew() {
	w := o.sim.World
	if !o.lease.mine || !w.APIReached() {
		return
	}
	if lease := &w.EtcdCluster().Objects.Lease; lease.Run == o.run {
		lease.Renewed, o.lease.renewed = w.Now, w.Now
	} else {
		o.told = true
	}
}

// mayBegin reports whether the next step may begin. One of the cluster needs the Lease, which a run has not
// that began before an API answered.
func (o *operator) mayBegin(onHost bool) bool {
	w := o.sim.World
	switch {
	case o.old, !o.scope.Cluster, o.sim.Off == NoLock, onHost && o.scope.Ends:
		return true
	case !o.lease.mine && onHost:
		return true // the host itself refuses whoever has lost its lock
	case !o.lease.mine && !o.access:
		return o.lockedAll() // nothing that goes through the API can be asked of such a run
	case !o.lease.mine:
		if !w.APIReached() {
			return false
		}
		taken, held := o.takeLease()
		o.told = o.told || held
		return taken
	}
	if o.sim.Off == NoLostCheck || o.sim.Off == NoFence {
		return true
	}
	standing := apply.Standing{Renewed: time.Duration(w.Now-o.lease.renewed) * time.Second, Locked: o.lockedAll()}
	if w.APIReached() {
		standing.Lease = apply.Ours
		if w.EtcdCluster().Objects.Lease.Run != o.run {
			standing.Lease = apply.Taken
		}
	}
	switch standing.Verdict() {
	case apply.MustEnd:
		o.told = true
		return false
	case apply.AskAgain:
		return o.sim.Off == NoAsking
	}
	return true
}

// lockedAll reports whether every control-plane host of the cluster says now that its lock is this run's.
func (o *operator) lockedAll() bool {
	return o.scope.Complete && !slices.ContainsFunc(o.hosts, func(h *world.Host) bool {
		return o.controls(h) && (!h.Reached() || h.Disk.Generation != o.locks[h.ID])
	})
}

// lost reports whether a run finds that its lock is another's: a host has said so, or the Lease says so now,
// or, without one, a host does.
func (s *Simulation) lost(o *operator) bool {
	if s.Off == NoLostCheck || s.Off == NoLock || s.Off == NoFence {
		return false
	}
	switch {
	case o.told:
		return true
	case o.lease.mine:
		return s.World.APIReached() && s.World.EtcdCluster().Objects.Lease.Run != o.run
	}
	return o.overtaken()
}

// view is which hosts the operators of this moment reach: another one sees another world.
func (s *Simulation) view() int {
	view := 0
	for i, h := range s.World.Hosts {
		if h.Hidden && i < 62 {
			view |= 1 << i
		}
	}
	return view
}
