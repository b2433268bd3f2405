package safety

import (
	"slices"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// countVotes counts the etcd cluster's voters without the given member, and how many of them serve or served at the
// time since.
func (c *Checker) countVotes(r *world.EtcdCluster, without int, since int64) (voters, healthy int) {
	for _, m := range r.Members {
		if m.Learner || m.ID == without {
			continue
		}
		voters++
		for _, h := range c.World.Hosts {
			if h.Address == m.Address && c.servedSince(h, since) {
				healthy++
			}
		}
	}
	return voters, healthy
}

// notice is the time in seconds within which a run need not have noticed that a member became unhealthy.
const notice = 20

func (c *Checker) servedSince(h *world.Host, since int64) bool {
	at, ever := c.served[h.Address]
	return c.World.Serving(h) || ever && at >= since-notice
}

// begunAt returns the start of the step on its host. For a step through the API it returns the current time.
func (c *Checker) begunAt(by world.Author) int64 {
	if at, ok := c.begins[by]; ok {
		return at
	}
	return c.World.Now
}

// noteServing records which members serve.
func (c *Checker) noteServing() {
	if c.World.Quorum(c.World.EtcdCluster()) {
		c.quorate = c.World.Now
	} else {
		c.without = c.World.Now
	}
	for _, h := range c.World.Hosts {
		if !h.ControlPlane || !c.World.Serving(h) {
			delete(c.serving, h.Address)
			continue
		}
		c.served[h.Address] = c.World.Now
		if since, ever := c.serving[h.Address]; !ever {
			c.serving[h.Address] = c.World.Now
		} else if c.World.Now-since > gap {
			c.lived[h.Address] = c.World.Now
		}
	}
}

func (c *Checker) ringOf(member int) *world.EtcdCluster {
	for _, r := range c.World.Rings {
		for _, m := range r.Members {
			if m.ID == member {
				return r
			}
		}
	}
	return nil
}

func (c *Checker) checkRemoved(e world.Effect) {
	r := c.ringOf(e.Member)
	for _, m := range r.Members {
		if m.ID == e.Member && m.Learner {
			return
		}
	}
	voters, healthy := c.countVotes(r, e.Member, c.World.Now)
	if voters == 0 || 2*healthy <= voters {
		c.Break(RemovalQuorum, "%s removes member %d, and of the %d voters left %d are healthy", e.By.Step, e.Member,
			voters, healthy)
	}
	h := c.World.HostOf(r, e.Member)
	if h == nil || c.granted[e.By.Run].Leaves[h.ID] {
		return
	}
	if at, ever := c.lived[h.Address]; c.hasInManifest(e.By.Run, h) || ever && c.World.Now-at < silence {
		c.Break(LivingMember, "%s removes the member of %s, whose data is there", e.By.Step, h.Name)
	}
}

// silence is the time in seconds after which a silent member that is to be removed counts as dead. gap is the longest
// service between two probes that probing can miss.
const (
	silence = int64(apply.DeathWithin / time.Second)
	gap     = int64(apply.DeathGap / time.Second)
)

func (c *Checker) checkPromoted(e world.Effect) {
	voters, healthy := c.countVotes(c.ringOf(e.Member), e.Member, c.begunAt(e.By))
	if c.World.Serving(e.Host) {
		healthy++
	}
	if 2*healthy <= voters+1 {
		c.Break(Promotion, "%s makes a voter of member %d, and then %d of %d voters are healthy", e.By.Step, e.Member,
			healthy, voters+1)
	}
}

// checkStopped checks that the other members have a quorum without this one. Of one or two voters, one may be stopped
// while all are healthy.
func (c *Checker) checkStopped(e world.Effect) {
	d := e.Host.Disk.Data
	if d == nil || !c.World.Voting(e.Host) || c.granted[e.By.Run].Ends {
		return
	}
	if e.By.Kind == step.Fence || e.By.Kind == step.Restore {
		c.checkRecovers(e)
		return
	}
	r := c.ringOf(d.Member)
	if r == nil {
		return
	}
	others, healthy := c.countVotes(r, d.Member, c.begunAt(e.By))
	if all := others + 1; 2*healthy <= all && (all > 2 || healthy < others) {
		c.Break(RestartQuorum, "%s stops the member of %s, and of %d voters %d others are healthy", e.By.Step,
			e.Host.Name, all, healthy)
	}
}

// checkSingleStop checks that steps have not stopped another control-plane host.
func (c *Checker) checkSingleStop(e world.Effect) {
	if c.granted[e.By.Run].Ends || e.By.Kind == step.Fence || e.By.Kind == step.Restore {
		return
	}
	for _, h := range c.World.Hosts {
		if h != e.Host && h.Run.Unit != nil && h.Run.Unit.Disrupted && !c.Left[h.Name] {
			c.Break(OneAtATime, "%s %s %s while %s is being worked on", e.By.Step, e.Verb, e.Host.Name, h.Name)
		}
	}
}

// checkBegun checks that a new etcd is started only if no control-plane host of the manifest, reachable or not, has
// data of a cluster. A restored etcd must be the only one.
func (c *Checker) checkBegun(e world.Effect) {
	if e.By.Kind == step.Restore {
		if d := e.Host.Disk.Data; d != nil {
			c.from[len(c.World.Rings)+1] = d.EtcdCluster
		}
		c.Recoveries++
		c.checkRecovers(e)
		c.checkNewest(e)
	}
	for _, h := range c.World.Hosts {
		if e.By.Kind == step.Restore {
			if h != e.Host && h.Run.Etcd && !c.isUnheard(e.By.Run, h) {
				c.Break(OneBrain, "%s restores etcd on %s while that of %s runs", e.By.Step, e.Host.Name, h.Name)
			}
			continue
		}
		unfinished := h.Disk.Marker != nil && !h.Disk.Marker.Complete // it may have copied the CAs
		if h.ControlPlane && !h.Outside && (h.Disk.Data != nil || h != e.Host && h.Disk.CA != 0 && !unfinished) {
			c.Break(NewCluster, "%s makes a new cluster on %s, and %s has data of one", e.By.Step, e.Host.Name, h.Name)
		}
	}
}

// isUnheard reports whether a run cannot know of a running etcd: its host is not in the manifest, it has no quorum, and
// no host of the manifest has data of it or of what was restored from it.
func (c *Checker) isUnheard(run string, h *world.Host) bool {
	if h.Disk.Data == nil || c.hasInManifest(run, h) || c.World.Serving(h) {
		return false
	}
	for _, other := range c.World.Hosts {
		if !c.hasInManifest(run, other) {
			continue
		}
		held := slices.Clone(other.Disk.Aside) // where a recovery has moved it
		if d := other.Disk.Data; d != nil {
			held = append(held, *d)
		}
		for _, d := range held {
			for id := d.EtcdCluster; id != 0; id = c.from[id] {
				if id == h.Disk.Data.EtcdCluster {
					return false
				}
			}
		}
	}
	return true
}
