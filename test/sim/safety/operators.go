package safety

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// Wakes records when a suspended run resumes. Its earlier requests may be sent after that.
func (c *Checker) Wakes(run string, at int64) { c.wakes[run] = at }

func (c *Checker) noteLock(e world.Effect) {
	if holder := c.holder[e.Host.ID]; holder != e.By.Run {
		c.former[e.Host.ID] = holder
	}
	c.holder[e.Host.ID], c.taken[e.Host.ID], c.robbed[e.Host.ID] = e.By.Run, c.World.Now, e.Forced
}

// checkLease checks that a run takes the Lease of a living run only if it was told to, or if it has the lock of every
// member's host and the other run is not on that host.
func (c *Checker) checkLease(e world.Effect) {
	last := c.World.EtcdCluster().Objects.Lease
	lives := last.Run != "" && last.Run != e.By.Run && c.World.Now-last.Renewed < world.StaleAfter
	if lives && !e.Forced && !c.hasAll(e.By.Run) {
		c.Break(OneOperator, "run %s takes the Lease that run %s renewed %d s ago", e.By.Run, last.Run,
			c.World.Now-last.Renewed)
	}
	c.leases[e.By.Run] = true
	c.lessee, c.leasedAt, c.forced = e.By.Run, c.World.Now, e.Forced
}

// checkAlone checks that no two runs work on the same thing. A run begins no step on a host that another run has
// locked, and no step about the cluster after another run has taken the Lease. Running steps may continue.
func (c *Checker) checkAlone(e world.Effect) {
	if e.Verb == world.Begun {
		if holder := c.holder[e.Host.ID]; holder != e.By.Run {
			c.Break(OneOperator, "run %s begins %s on %s, whose lock run %s has", e.By.Run, e.By.Step, e.Host.Name,
				holder)
		}
		if e.Host.ControlPlane && c.leases[e.By.Run] {
			c.checkStale(e)
		}
		return
	}
	if _, begun := c.begins[e.By]; begun || e.By.Kind.OnHost() {
		return
	}
	c.begins[e.By] = c.World.Now
	if h := e.Host; h != nil && !c.ofControlPlane(h) && !h.Outside && e.By.Kind != step.RemoveEtcd &&
		!c.leases[e.By.Run] {
		if c.holder[h.ID] != e.By.Run && !c.canNotKnow(e.By.Run, c.robbed[h.ID], c.taken[h.ID]) {
			c.Break(OneOperator, "run %s begins %s about %s, whose lock run %s has", e.By.Run, e.By.Step, h.Name,
				c.holder[h.ID])
		}
		return
	}
	if e.By.Kind == step.RemoveEtcd && !c.leases[e.By.Run] && c.hasAll(e.By.Run) {
		return // it needs no API, and no other run can have the Lease and reach a host
	}
	c.checkStale(e)
}

// ofControlPlane reports whether the host is known to be a control plane: by its own state, by its Node, or by etcd's
// members. A bare machine that replaces a removed one is not.
func (c *Checker) ofControlPlane(h *world.Host) bool {
	r, d := c.World.EtcdCluster(), h.Disk
	if !h.ControlPlane || r == nil || d.Data != nil || d.Marker != nil && d.Marker.Role == desired.ControlPlane {
		return h.ControlPlane
	}
	n := r.Objects.Node(h.Name)
	return n != nil && n.ControlPlane || slices.ContainsFunc(r.Members, func(m world.Member) bool {
		return m.Name == h.Name || m.Address == h.Address
	})
}

// checkStale checks that the run holds its Lease. A run that began before the API existed takes it before its first
// step through the API. A run cannot know at once that the Lease was taken by force, or taken while the run was
// suspended.
func (c *Checker) checkStale(e world.Effect) {
	if c.lessee == e.By.Run || c.leases[e.By.Run] && c.canNotKnow(e.By.Run, c.forced, c.leasedAt) {
		return
	}
	c.Break(OneOperator, "run %s begins %s although run %s has the cluster's lease", e.By.Run, e.By.Step, c.lessee)
}

// canNotKnow reports whether the run cannot know yet that its lock was taken.
func (c *Checker) canNotKnow(run string, forced bool, taken int64) bool {
	wakes, slept := c.wakes[run]
	return forced && c.World.Now-taken <= learning || slept && c.World.Now-wakes <= waking
}

// hasAll reports whether the run has the lock of every host with a member of etcd, or had it and cannot know yet that
// it was taken.
func (c *Checker) hasAll(run string) bool {
	for _, h := range c.World.Hosts {
		robbed := c.former[h.ID] == run && c.canNotKnow(run, c.robbed[h.ID], c.taken[h.ID])
		if h.Disk.Data != nil && c.holder[h.ID] != run && !robbed {
			return false
		}
	}
	return true
}

// checkForgotten checks that no other run uses a host whose working directory is removed, because its lock and its step
// would be lost.
func (c *Checker) checkForgotten(e world.Effect) {
	h := e.Host
	if h.Held != nil && h.Held.Run != e.By.Run || h.Run.Unit != nil {
		c.Break(OneOperator, "run %s removes the working directory of %s, whose lock run %s has", e.By.Run, h.Name,
			c.holder[h.ID])
	}
}

// learning is the time in seconds until a run notices that its lock was taken by force. waking is that time for a run
// that was suspended.
const (
	learning = 10
	waking   = 3
)
