package safety

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// Wakes notes when a run goes on whose program stands still. What it had asked for before may go out then.
func (c *Checker) Wakes(run string, at int64) { c.wakes[run] = at }

func (c *Checker) lock(e world.Effect) {
	c.holder[e.Host.ID], c.taken[e.Host.ID], c.robbed[e.Host.ID] = e.By.Run, c.World.Now, e.Forced
}

// lease checks that nobody takes the Lease from a run that lives, unless it was told to, or has the lock of every
// member's host, where that run is not.
func (c *Checker) lease(e world.Effect) {
	last := c.World.EtcdCluster().Objects.Lease
	lives := last.Run != "" && last.Run != e.By.Run && c.World.Now-last.Renewed < world.StaleAfter
	if lives && !e.Forced && !c.hasAll(e.By.Run) {
		c.Break(OneOperator, "run %s takes the Lease that run %s renewed %d s ago", e.By.Run, last.Run,
			c.World.Now-last.Renewed)
	}
	c.leases[e.By.Run] = true
	c.lessee, c.leasedAt, c.forced = e.By.Run, c.World.Now, e.Forced
}

// alone checks that no two runs work on the same thing: that none begins a step on a host whose lock another has, and
// none about the cluster when another one has taken the cluster's Lease. What was begun before goes on.
func (c *Checker) alone(e world.Effect) {
	if e.Verb == world.Begun {
		if holder := c.holder[e.Host.ID]; holder != e.By.Run {
			c.Break(OneOperator, "run %s begins %s on %s, whose lock run %s has", e.By.Run, e.By.Step, e.Host.Name,
				holder)
		}
		if e.Host.ControlPlane && c.leases[e.By.Run] {
			c.stale(e)
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
		return // it needs no API, and nobody else can have the Lease and reach a host
	}
	c.stale(e)
}

// ofControlPlane reports whether somebody can know that the host is of the control plane: by what it has, by its Node,
// or by etcd's list. A bare machine in the place of one that was taken out before is not.
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

// stale checks that the run's Lease is its own. One that began before there was an API takes it before its first step
// through that. Nobody can know at once that a person has taken it by force, or what happened in his sleep.
func (c *Checker) stale(e world.Effect) {
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

// hasAll reports whether the run has the lock of every host that has a member of etcd.
func (c *Checker) hasAll(run string) bool {
	for _, h := range c.World.Hosts {
		if h.Disk.Data != nil && c.holder[h.ID] != run {
			return false
		}
	}
	return true
}

// forgotten checks that no other run has the host whose working directory goes: its lock and its step would go too.
func (c *Checker) forgotten(e world.Effect) {
	h := e.Host
	if h.Held != nil && h.Held.Run != e.By.Run || h.Run.Unit != nil {
		c.Break(OneOperator, "run %s removes the working directory of %s, whose lock run %s has", e.By.Run, h.Name,
			c.holder[h.ID])
	}
}

// learning is how long a run may take to learn that its lock was taken by force, and waking how long one may take that
// stood still, in seconds.
const (
	learning = 10
	waking   = 3
)
