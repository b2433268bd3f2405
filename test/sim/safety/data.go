package safety

import (
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// The rules about etcd's data: a host keeps its data, and no other data replaces that of a working cluster.

// hasInManifest reports whether the manifest of the run has the host.
func (c *Checker) hasInManifest(run string, h *world.Host) bool {
	if wanted := c.granted[run].Wanted; wanted != nil {
		return wanted[h.ID]
	}
	return c.Wanted[h.Name]
}

// checkDeleted checks that data moved aside is unused, and that only such data is deleted.
func (c *Checker) checkDeleted(e world.Effect) {
	d, ends := e.Host.Disk, c.granted[e.By.Run].Ends
	switch {
	case e.Verb == world.Deleted && (d.Data != nil || d.CA != 0):
		c.Break(DataKept, "%s deletes what %s holds", e.By.Step, e.Host.Name)
	case e.Verb == world.Deleted, d.Data == nil:
	case !ends && c.World.Serving(e.Host):
		c.Break(DataKept, "%s moves the data of %s aside, whose member serves", e.By.Step, e.Host.Name)
	case !ends && e.By.Kind == step.ResetHost && c.isListed(d.Data):
		c.Break(MemberLeft, "%s moves the data of %s aside, whose member is in etcd's list", e.By.Step, e.Host.Name)
	}
}

// isListed reports whether the data belongs to a member of the current etcd.
func (c *Checker) isListed(d *world.Data) bool {
	r := c.World.EtcdCluster()
	if r == nil || r.ID != d.EtcdCluster {
		return false
	}
	for _, m := range r.Members {
		if m.ID == d.Member {
			return true
		}
	}
	return false
}

// checkPurged checks that kept data is no longer needed.
func (c *Checker) checkPurged(e world.Effect) {
	if !c.granted[e.By.Run].Ends && len(e.Host.Disk.Aside) > 0 && c.World.Now-c.quorate > notice {
		c.Break(KeptNeeded, "%s deletes what %s has kept, and etcd has had no quorum for %d s", e.By.Step, e.Host.Name,
			c.World.Now-c.quorate)
	}
}

// checkRecovers checks that etcd is restarted from existing data only without a quorum. It excuses a quorum that has
// just returned, because no run can have noticed it.
func (c *Checker) checkRecovers(e world.Effect) {
	if c.World.Quorum(c.World.EtcdCluster()) && c.World.Now-c.without > notice {
		c.Break(Recovery, "%s %s %s, and etcd has had its quorum for %d s", e.By.Step, e.Verb, e.Host.Name,
			c.World.Now-c.without)
	}
}

// checkNewest checks that no answering host had newer data of the same etcd than the host of the recovery.
func (c *Checker) checkNewest(e world.Effect) {
	data := e.Host.Disk.Data
	if data == nil || c.granted[e.By.Run].Chosen {
		return
	}
	for _, h := range c.World.Hosts {
		if h == e.Host || h.Outside || !h.Reached() {
			continue
		}
		if d := h.Disk.Data; d != nil && d.EtcdCluster == data.EtcdCluster && d.Revision > data.Revision {
			c.breakNewest(e, h, d)
		}
		if n := len(h.Disk.Aside); n > 0 && h.Disk.Marker != nil && h.Disk.Marker.Fenced == e.By.Run {
			if d := h.Disk.Aside[n-1]; d.EtcdCluster == data.EtcdCluster && d.Revision > data.Revision {
				c.breakNewest(e, h, &d)
			}
		}
	}
}

func (c *Checker) breakNewest(e world.Effect, h *world.Host, d *world.Data) {
	c.Break(NewestData, "%s begins anew on %s with revision %d, and %s has %d", e.By.Step, e.Host.Name,
		e.Host.Disk.Data.Revision, h.Name, d.Revision)
}
