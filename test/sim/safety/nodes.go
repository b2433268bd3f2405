package safety

import (
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// versionParts returns a version's minor and patch: 36 and 3 for "1.36.3". Kubernetes has one major version.
func versionParts(version string) (minor, patch int) {
	_, rest, _ := strings.Cut(version, ".")
	one, two, ok := strings.Cut(rest, ".")
	if !ok {
		return 0, 0
	}
	minor, _ = strconv.Atoi(one)
	patch, _ = strconv.Atoi(two)
	return minor, patch
}

// checkAPIChanged checks that an API server is upgraded by one minor at most, and that the others are at most one minor
// apart.
func (c *Checker) checkAPIChanged(e world.Effect) {
	minor, patch := versionParts(e.New)
	if e.Old != "" {
		was, fix := versionParts(e.Old)
		if minor < was || minor == was && patch < fix || minor > was+1 {
			c.Break(NoDowngrade, "%s changes the API server of %s from %s to %s", e.By.Step, e.Host.Name, e.Old, e.New)
		}
	}
	for _, h := range c.World.Hosts {
		if h == e.Host || h.Run.API == "" {
			continue
		}
		if other, _ := versionParts(h.Run.API); other < minor-1 || other > minor+1 {
			c.Break(Skew, "the API server of %s becomes %s, and that of %s is %s", e.Host.Name, e.New, h.Name,
				h.Run.API)
		}
	}
}

// checkKubeletChanged checks that a kubelet's version changes only on a drained node. The node is cordoned unless it is
// only now joining again.
func (c *Checker) checkKubeletChanged(e world.Effect) {
	r := c.World.EtcdCluster()
	if e.Old == "" || e.Old == e.New || r == nil {
		return
	}
	n := r.Objects.Node(e.Host.Name)
	if n != nil && (!n.Cordoned && e.Host.Disk.Joined() || r.Objects.PodsOn(n.Name) > 0) {
		c.Break(Drained, "%s changes the kubelet of %s from %s to %s with %d pods on it, closed: %v", e.By.Step, n.Name,
			e.Old, e.New, r.Objects.PodsOn(n.Name), n.Cordoned)
	}
}

// checkEvicted checks that enough pods of the application are left.
func (c *Checker) checkEvicted(e world.Effect) {
	if c.Forced {
		return
	}
	n := c.findNode(e.Pod.Node)
	works := n != nil && n.Ready && c.World.Now-e.Pod.Since >= starting
	if available := c.World.Available(e.App); works && available-1 < e.App.Min {
		c.Break(Budget, "%s takes a pod of %s, of which %d are available and %d must be", e.By.Step, e.App.Name,
			available, e.App.Min)
	}
}

// starting is the time until a pod is available, in seconds.
const starting = 5

func (c *Checker) checkUncordoned(e world.Effect) {
	if e.By.Kind == step.Uncordon && c.granted[e.By.Run].Hooked &&
		slices.Contains(e.Host.Disk.Owed, string(desired.Upgrading)) {
		c.Break(Hooked, "%s opens %s", e.By.Step, e.Host.Name)
	}
	if n := c.World.EtcdCluster().Objects.Node(e.Host.Name); n != nil && n.Cordoned && n.CordonedBy == "" {
		c.Break(OwnCordons, "%s opens %s, which a person has closed", e.By.Step, n.Name)
	}
}

func (c *Checker) nodeDeleted(e world.Effect) {
	if h := e.Host; h != nil && !c.granted[e.By.Run].Leaves[h.ID] && c.Well(h) {
		c.Break(Untouched, "%s deletes the Node of %s, which is well", e.By.Step, h.Name)
	}
}

// State checks the rules that hold at every moment.
func (c *Checker) State() {
	if c.first != nil {
		return
	}
	c.noteServing()
	c.checkSingleEtcd()
	c.checkReadable()
	c.checkTrusted()
	if c.World.Version != c.checked {
		c.noteIntact()
		c.checkVersions()
		c.checkCordoned()
		c.checkEndpoints()
		c.checked = c.World.Version
	}
}

// checkEndpoints checks that the certificates behind the addresses that kubelets dial contain these names.
func (c *Checker) checkEndpoints() {
	for _, h := range c.World.Hosts {
		d := &h.Disk
		if !h.ControlPlane && d.Joined() && d.KubeletCA == c.World.CA() && d.KubeletCA != 0 &&
			!c.World.Believed(d.Dials) {
			c.Break(Believed, "%s dials %s", h.Name, d.Dials)
		}
	}
}

// checkSingleEtcd checks that only one etcd serves, and that it has every acknowledged write.
func (c *Checker) checkSingleEtcd() {
	serving := 0
	for _, r := range c.World.Rings {
		newest, ok := c.World.Newest(r)
		if !ok || c.isLeftBehind(r) {
			continue
		}
		serving++
		if newest < r.Acked {
			c.Break(AckedWrites, "etcd serves revision %d, and %d was acknowledged", newest, r.Acked)
		}
	}
	if serving > 1 {
		c.Break(OneBrain, "%d etcds serve", serving)
	}
}

// isLeftBehind reports whether only machines that were removed from the manifest hold data of the etcd, and another
// etcd has been started since.
func (c *Checker) isLeftBehind(r *world.EtcdCluster) bool {
	if r == c.World.EtcdCluster() {
		return false
	}
	for _, h := range c.World.Hosts {
		if d := h.Disk.Data; d != nil && d.EtcdCluster == r.ID && !c.Left[h.Name] {
			return false
		}
	}
	return true
}

// checkVersions checks every kubelet against the API servers that it may reach.
func (c *Checker) checkVersions() {
	oldest, newest := 0, 0
	for _, h := range c.World.Hosts {
		// A host outside the manifest counts while it serves.
		if h.Up && h.Run.API != "" && (!c.Left[h.Name] || c.World.APIReady(h)) {
			minor, _ := versionParts(h.Run.API)
			if oldest == 0 || minor < oldest {
				oldest = minor
			}
			newest = max(newest, minor)
		}
	}
	for _, h := range c.World.Hosts {
		if !h.Up || !h.Run.Kubelet || h.Run.KubeletVersion == "" {
			continue
		}
		kubelet, _ := versionParts(h.Run.KubeletVersion)
		low, high := oldest, newest
		if h.Disk.Local {
			low, _ = versionParts(h.Run.API)
			high = low
		}
		if low != 0 && (kubelet > low || kubelet < high-3) {
			c.Break(Skew, "the kubelet of %s is %s, and the API servers that it reaches are of minors %d to %d", h.Name,
				h.Run.KubeletVersion, low, high)
		}
	}
}

// checkCordoned checks how many members runs have cordoned: one of the control plane, and as many workers as may be out
// of service.
func (c *Checker) checkCordoned() {
	r := c.World.EtcdCluster()
	if r == nil {
		return
	}
	control, workers := 0, 0
	for _, n := range r.Objects.Nodes {
		switch {
		case n.CordonedBy == "" || !c.hasJoined(n):
			delete(c.leftClosed, n.Name)
			delete(c.late, n.Name)
		case c.late[n.Name]:
		case c.Left[n.Name] || c.leftClosed[n.Name]: // a run cordoned it before the host returned to the manifest
			c.leftClosed[n.Name] = true
		case c.hasNamedHosts(n.CordonedBy): // in addition to one that an interrupted run has left cordoned
		case n.ControlPlane:
			control++
		default:
			workers++
		}
	}
	if control > 1 {
		c.Break(OneAtATime, "%d control-plane Nodes are closed by runs", control)
	}
	if workers > c.Workers {
		c.Break(Unavailable, "%d workers are closed by runs, and %d may be", workers, c.Workers)
	}
}

// hasNamedHosts reports whether a person has named the hosts of the run.
func (c *Checker) hasNamedHosts(run string) bool {
	g := c.granted[run]
	return g.Limited || len(g.Leaves) > 0
}

// CordonedByHand records that a person cordoned a Node.
func (c *Checker) CordonedByHand(node string) {
	if n := c.findNode(node); n != nil && n.Cordoned && n.CordonedBy == "" {
		c.byHand[node] = true
	}
}

// ByHand reports whether a person cordoned the Node.
func (c *Checker) ByHand(node string) bool { return c.byHand[node] }

func (c *Checker) findNode(name string) *world.Node {
	if r := c.World.EtcdCluster(); r != nil {
		return r.Objects.Node(name)
	}
	return nil
}

// Replaced checks that a replacement of a machine as instructed keeps the quorum.
func (c *Checker) Replaced(h *world.Host) {
	d := h.Disk.Data
	if d == nil || !c.World.Voting(h) {
		return
	}
	if voters, healthy := c.countVotes(c.ringOf(d.Member), d.Member, c.World.Now); voters > 0 && 2*healthy <= voters {
		c.Break(RemovalQuorum, "the instruction to replace %s leaves %d of %d voters", h.Name, healthy, voters)
	}
}

func (c *Checker) hasJoined(n *world.Node) bool {
	h := c.World.Host(n.Name)
	return h != nil && h.Disk.Joined()
}

// checkToken checks the scope of a host's join token.
func (c *Checker) checkToken(e world.Effect) {
	switch e.By.Kind {
	case step.JoinWorker, step.JoinPrepare, step.JoinEtcd, step.JoinFinish:
		if r := c.World.EtcdCluster(); r != nil && r.Objects.AnyToken {
			c.Break(OwnTokens, "%s gives %s one", e.By.Step, nameOf(e.Host))
		}
	}
}
