package drive

import (
	"slices"

	"kubeone/test/sim/world"
)

// lock takes the lock of one host. A worker that gives none is not touched; a control-plane host that gives
// none ends the run, and so does another run that has all the workers which this one is about.
func (o *operator) lock() {
	if o.next == len(o.hosts) {
		if o.state = leasing; o.held && len(o.locks) == 0 {
			o.finish(Held)
		}
		return
	}
	h := o.hosts[o.next]
	o.next++
	granted, refused := false, false
	answered := o.command(h, func() {
		o.locks[h.ID], granted = o.sim.World.TakeLock(h, world.Claim{Run: o.run, Force: o.force, Stale: staleAfter})
		refused = !granted && !h.Full
	})
	if answered && granted {
		return
	}
	delete(o.locks, h.ID)
	o.held = o.held || answered && refused
	switch {
	case answered && refused && !o.dispensable(h):
		o.finish(Held)
	case o.controls(h) || o.old:
		o.finish(Failed)
	default:
		o.denied[h.ID] = true
	}
}

// dispensable reports whether the run goes on without the host, also where another run has its lock.
func (o *operator) dispensable(h *world.Host) bool {
	return !o.controls(h) && !o.old && len(o.hosts) > 1
}

// controls reports whether the host is of the control plane, as the run's manifest or the cluster has it.
func (o *operator) controls(h *world.Host) bool {
	return slices.Contains(o.scope.ControlPlane, h.ID)
}

func (o *operator) unlock() {
	for _, h := range o.hosts {
		if _, mine := o.locks[h.ID]; mine && h.Reached() {
			o.sim.World.Unlock(h, o.run)
		}
	}
	o.sim.World.ReleaseLease(o.run)
	o.locks = map[string]int64{}
}

// beat keeps the locks: a host that was away gets its keeper again, if nobody took the lock in between.
func (o *operator) beat() {
	o.renew()
	for _, h := range o.hosts {
		generation, mine := o.locks[h.ID]
		switch {
		case !mine || !h.Reached():
		case h.Held != nil && h.Held.Run == o.run:
			h.Held.Beat = o.sim.World.Now
		default:
			again := world.Claim{Run: o.run, Ours: generation, Stale: staleAfter}
			_, ok := o.sim.World.TakeLock(h, again)
			switch lost := !ok && h.Held != nil && h.Held.Run != o.run; {
			case lost && o.dispensable(h):
				o.denied[h.ID] = true
			case lost:
				o.told = true
			}
		}
	}
}

// overtaken reports whether a host that can be asked has the lock of a later run.
func (o *operator) overtaken() bool {
	for _, h := range o.hosts {
		if !o.dispensable(h) && o.another(h) {
			return true
		}
	}
	return false
}

// another reports whether the host can be asked and has the lock of a later run.
func (o *operator) another(h *world.Host) bool {
	generation, mine := o.locks[h.ID]
	return mine && h.Reached() && h.Disk.Generation > generation
}
