// Package safety checks the rules that must hold despite any interruption, against the simulated world. It computes
// quorums and versions itself, and is independent of probes and of planning. From a plan it uses only what was
// approved: which step on which host.
package safety

import (
	"fmt"

	"kubeone/internal/decide/identity"
	"kubeone/internal/plan"
	"kubeone/test/sim/world"
)

// Rule is the name of a rule.
type Rule string

// The rules.
const (
	RemovalQuorum Rule = "a member is removed only if the healthy remaining voters are a quorum of the remaining ones"
	RestartQuorum Rule = "a member is stopped only if the healthy others are a quorum"
	LivingMember  Rule = "apply removes no living member, and no member whose host is in the manifest"
	Promotion     Rule = "a learner becomes a voter only if the healthy voters are then a quorum"
	OneAtATime    Rule = "one control-plane host changes at a time"
	Skew          Rule = "no kubelet is newer than the API servers that it reaches, or older by more than three minors"
	NoDowngrade   Rule = "no API server is downgraded or skips a minor"
	Drained       Rule = "a kubelet changes its version only on a drained node"
	Planned       Rule = "every change was approved"
	Untouched     Rule = "a healthy host is not touched by a plan about others"
	OneOperator   Rule = "one operator at a time"
	NewCluster    Rule = "a new cluster is started only if no control-plane host has data of one"
	DataKept      Rule = "etcd's data and the PKI are never deleted"
	MemberLeft    Rule = "a host's data is moved aside only after its member has left etcd"
	KeptNeeded    Rule = "kept data is deleted only while etcd has a quorum"
	Recovery      Rule = "a cluster is recovered only if its etcd has no quorum"
	NewestData    Rule = "a cluster is recovered from the newest reachable data, unless a person chooses"
	Role          Rule = "a host keeps the role with which it joined, whatever the manifest says"
	AckedWrites   Rule = "no acknowledged write is lost"
	OneBrain      Rule = "only one etcd serves at a time"
	Budget        Rule = "disruption budgets hold"
	OwnCordons    Rule = "a Node that a person cordoned stays cordoned"
	Unavailable   Rule = "the number of nodes out of service is limited"
	OwnTokens     Rule = "no host gets a join token that is valid for any Node"
	Believed      Rule = "every API server's certificate has the name of each dialled endpoint"
	Owner         Rule = "a host belongs to the manifest or to one Machine, and only its owner changes it"
	Readable      Rule = "every API server, and the next one on its host, has the keys of all Secrets"
	Trusted       Rule = "every member of etcd trusts the certificates of all others"
	Hooked        Rule = "a node is uncordoned only after the hooks after its upgrade have succeeded"
	Pruned        Rule = "no object of an addon in the manifest is deleted"
	Told          Rule = "a run that reports a match also reports cluster DNS if it does not run"
	Converged     Rule = "after the faults the next runs reach an empty plan with every node uncordoned"
)

// Violation is a broken rule.
type Violation struct {
	Rule   Rule
	Detail string
	At     int64 // the world's time
}

// Error describes the violation.
func (v *Violation) Error() string { return fmt.Sprintf("at %d s: %s: %s", v.At, v.Rule, v.Detail) }

// Checker checks one world.
type Checker struct {
	World *world.World
	// Wanted are the names of the manifest's hosts. Workers is the number of workers that may be out of service at a
	// time.
	Wanted  map[string]bool
	Workers int
	// Forced means that a person allowed deleting pods when a drain takes too long.
	Forced bool
	// Left are the names of hosts that were removed from the manifest. Only a person may change them.
	Left map[string]bool
	// Recoveries counts etcd clusters that were restored from an earlier one.
	Recoveries int

	approved   map[string]plan.Plan
	granted    map[string]Grant       // a person's permissions for a run beyond those of apply
	holder     map[string]string      // the last run that took a host's lock
	former     map[string]string      // and the one before
	taken      map[string]int64       // when each host's lock was last taken
	robbed     map[string]bool        // whether that was by force
	leases     map[string]bool        // runs that have taken the cluster's Lease
	lessee     string                 // the last of them,
	leasedAt   int64                  // when it took the Lease,
	forced     bool                   // and whether it was by force
	wakes      map[string]int64       // when each suspended run last resumed
	byHand     map[string]bool        // Nodes that a person cordoned
	late       map[string]bool        // Nodes cordoned by runs that could not know yet that their lock was taken
	leftClosed map[string]bool        // Nodes that runs had cordoned when their hosts left the manifest
	served     map[string]int64       // when the member at an address was last seen to serve,
	serving    map[string]int64       // since when it has served without a break,
	lived      map[string]int64       // and when it last served too long to be missed
	checked    int                    // the world's version at the last State
	begins     map[world.Author]int64 // when steps began on their hosts
	quorate    int64                  // when etcd last had a quorum
	without    int64                  // when it last had none
	from       map[int]int            // the source etcd cluster of a restored one, by ID
	// wasIntact are the intact hosts at the last State, and intactSince the start of that.
	wasIntact   map[string]bool
	intactSince map[string]int64
	first       *Violation
}

// Grant is a person's request beyond what apply may do. The zero value is an apply with the initial manifest.
type Grant struct {
	Leaves   map[string]bool // IDs of living hosts that leave the cluster
	Ends     bool            // the cluster is reset
	Recovers bool            // etcd is recovered
	Chosen   bool            // on the host that a person chose
	Limited  bool            // only the hosts that a person named
	Hooked   bool            // its manifest has hooks after upgrades
	Machine  string          // UID of the run's Machine; empty for hosts of the manifest
	// Objects are the keys of the objects of the addons in the run's manifest.
	Objects map[string]bool
	// Wanted are the IDs of the hosts in the run's manifest. Nil means those of the initial manifest.
	Wanted map[string]bool
	// Places are the IDs of the machines where the run's hosts were found, by the host's ID.
	Places map[string]identity.ProbeKey
}

// New returns a checker that watches the world from now on.
func New(w *world.World, wanted []string, workers int) *Checker {
	c := &Checker{World: w, Wanted: map[string]bool{}, Workers: workers}
	c.approved, c.granted = map[string]plan.Plan{}, map[string]Grant{}
	c.served, c.begins = map[string]int64{}, map[world.Author]int64{}
	c.serving, c.lived = map[string]int64{}, map[string]int64{}
	c.wakes, c.robbed = map[string]int64{}, map[string]bool{}
	c.former = map[string]string{}
	c.holder, c.byHand = map[string]string{}, map[string]bool{}
	c.late = map[string]bool{}
	c.leftClosed, c.from = map[string]bool{}, map[int]int{}
	c.wasIntact, c.intactSince = map[string]bool{}, map[string]int64{}
	c.taken, c.leases = map[string]int64{}, map[string]bool{}
	for _, name := range wanted {
		c.Wanted[name] = true
	}
	w.Watch = c.checkEffect
	return c
}

// Found returns the first violation, or nil.
func (c *Checker) Found() *Violation { return c.first }

// Break records a violation found elsewhere.
func (c *Checker) Break(rule Rule, format string, args ...any) {
	if c.first == nil {
		c.first = &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...), At: c.World.Now}
	}
}

// Approve records the approved plan and the other permissions of a run.
func (c *Checker) Approve(run string, p plan.Plan, g Grant) {
	c.approved[run], c.granted[run] = p, g
}

// Begin checks the approved plan of a run before it is carried out, against the world at the start of its last probing.
func (c *Checker) Begin(run string, look int64) {
	p, g := c.approved[run], c.granted[run]
	for _, s := range p.Steps {
		h := c.World.Host(s.Host)
		if h == nil || g.Leaves[h.ID] || g.Recovers && h.ControlPlane { // recoveries have their own rule
			continue
		}
		if world.Repairs(s.Intent.Kind) && c.isIntact(h) && c.intactSince[h.ID] <= look {
			c.Break(Untouched, "step %s is about %s, which is well", s.ID, h.Name)
		}
	}
}

// isIntact reports whether the host is a member that works and has lost nothing.
func (c *Checker) isIntact(h *world.Host) bool { return c.Well(h) && !h.Lacks() }

// noteIntact records since when hosts are intact.
func (c *Checker) noteIntact() {
	for _, h := range c.World.Hosts {
		switch was := c.wasIntact[h.ID]; {
		case was == c.isIntact(h):
			continue
		case !was:
			c.intactSince[h.ID] = c.World.Now
		}
		c.wasIntact[h.ID] = !c.wasIntact[h.ID]
	}
}

// Well reports whether the host is a member that works.
func (c *Checker) Well(h *world.Host) bool {
	return h.Up && h.Disk.Joined() && h.Run.Kubelet && h.Run.Containerd && (!h.ControlPlane || c.World.APIReady(h))
}

func (c *Checker) checkEffect(e world.Effect) {
	if c.first != nil {
		return
	}
	switch e.Verb {
	case world.LockTaken:
		c.noteLock(e)
	case world.LeaseTaken:
		c.checkLease(e)
	case world.Forgotten:
		c.checkForgotten(e)
	default:
		c.checkDone(e)
	}
}

// checkDone checks an effect of a step.
func (c *Checker) checkDone(e world.Effect) {
	c.checkPlanned(e)
	c.checkOwned(e)
	if e.Verb != world.Restricted {
		c.checkAlone(e)
	}
	switch e.Verb {
	case world.Begun:
		c.begins[e.By] = c.World.Now
		c.checkToken(e)
	case world.Removed:
		c.checkRemoved(e)
	case world.Promoted:
		c.checkPromoted(e)
	case world.EtcdStopped:
		c.checkStopped(e)
		c.checkSingleStop(e)
	case world.APIChanged:
		c.checkAPIChanged(e)
		c.checkSingleStop(e)
	case world.KubeletChanged:
		c.checkKubeletChanged(e)
	case world.RingMade:
		c.checkBegun(e)
	case world.Deleted, world.MovedAside:
		c.checkDeleted(e)
	case world.Purged:
		c.checkPurged(e)
	case world.Cordoned:
		c.late[e.Host.Name] = c.leases[e.By.Run] && c.lessee != e.By.Run || c.holder[e.Host.ID] != e.By.Run
	case world.Evicted:
		c.checkEvicted(e)
	case world.Uncordoned:
		c.checkUncordoned(e)
	case world.NodeDeleted:
		c.nodeDeleted(e)
	case world.ObjectDeleted:
		if c.granted[e.By.Run].Objects[e.Old] {
			c.Break(Pruned, "step %s of run %s deletes the %s", e.By.Step, e.By.Run, e.Old)
		}
	}
}

// checkPlanned checks that the effect belongs to an approved step on its host.
func (c *Checker) checkPlanned(e world.Effect) {
	p, ok := c.approved[e.By.Run]
	if !ok {
		c.Break(Planned, "run %s %s %s without an approved plan", e.By.Run, e.Verb, nameOf(e.Host))
		return
	}
	s, ok := p.Step(e.By.Step)
	if !ok || s.Host != e.By.Host || s.Intent.Kind != e.By.Kind {
		c.Break(Planned, "step %s of run %s %s %s, and is not in its plan", e.By.Step, e.By.Run, e.Verb, nameOf(e.Host))
		return
	}
	if h := e.Host; h != nil && e.Verb != world.Begun && s.Host == h.ID && h.Disk.Joined() && s.Intent.Role != "" &&
		h.Disk.Marker.Role != s.Intent.Role && !c.leavesGone(e) {
		c.Break(Role, "step %s takes %s for a %s, and it has joined as a %s", s.ID, h.Name, s.Intent.Role,
			h.Disk.Marker.Role)
	}
	// A silent host at the address of another host's ID is unknown to the world by its own ID.
	placed := (e.Verb == world.NodeDeleted || e.Verb == world.Removed) && e.Host != nil &&
		c.World.Host(s.Host) == nil && c.granted[e.By.Run].Places[s.Host] == identity.ProbeKey(e.Host.ID)
	if e.Host != nil && s.Host != "" && s.Host != e.Host.ID && !placed {
		c.Break(Planned, "step %s is about %s, and %s %s", s.ID, s.Host, e.Verb, e.Host.Name)
	}
}

// checkOwned checks by the host's own note that the host belongs to the run.
func (c *Checker) checkOwned(e world.Effect) {
	if e.Host == nil || e.Verb == world.Begun || !e.By.Kind.OnHost() {
		return
	}
	if m := e.Host.Disk.Marker; m != nil && m.Machine != c.granted[e.By.Run].Machine {
		c.Break(Owner, "step %s of run %s, for Machine %q, %s %s, which belongs to Machine %q", e.By.Step, e.By.Run,
			c.granted[e.By.Run].Machine, e.Verb, e.Host.Name, m.Machine)
	}
}

// leavesGone reports whether the effect only deletes the Node of a leaving host on which nothing runs. That is safe in
// each role.
func (c *Checker) leavesGone(e world.Effect) bool {
	return e.Verb == world.NodeDeleted && c.granted[e.By.Run].Leaves[e.Host.ID] && !e.Host.Up
}

func nameOf(h *world.Host) string {
	if h == nil {
		return "the cluster"
	}
	return h.Name
}
