// Package safety checks the rules that must hold whatever is interrupted, against the simulated truth. It does its own
// arithmetic, of quorums and of versions, knows what probes found out as little as it knows how plans are made, and
// takes of a plan only what was approved: which step on which host.
package safety

import (
	"fmt"

	"kubeone/internal/decide/identity"
	"kubeone/internal/plan"
	"kubeone/test/sim/world"
)

// Rule is the name of one rule.
type Rule string

// The rules.
const (
	RemovalQuorum Rule = "a member leaves only if the healthy voters left are a quorum of those left"
	RestartQuorum Rule = "a member is stopped only if the healthy others are a quorum"
	LivingMember  Rule = "apply removes no living member, and none whose host is still wanted"
	Promotion     Rule = "a learner becomes a voter only if the healthy voters are then a quorum"
	OneAtATime    Rule = "one control-plane host at a time"
	Skew          Rule = "no kubelet is newer than the API servers that it reaches, or older by more than three minors"
	NoDowngrade   Rule = "no API server goes back, or skips a minor"
	Drained       Rule = "a kubelet changes its version only on a drained node"
	Planned       Rule = "nothing is changed that was not approved"
	Untouched     Rule = "a healthy host is not touched by a plan about others"
	OneOperator   Rule = "one operator at a time"
	NewCluster    Rule = "a new cluster is made only if no control-plane host has anything of one"
	DataKept      Rule = "etcd's data and the PKI are never deleted"
	MemberLeft    Rule = "a host's data goes only after its member has left etcd"
	KeptNeeded    Rule = "what was kept is deleted only while etcd has a quorum"
	Recovery      Rule = "a cluster is recovered only if its etcd has no quorum"
	NewestData    Rule = "a cluster is recovered from the newest data that can be reached, unless a person chooses"
	Role          Rule = "a host is what it has joined as, whatever a manifest calls it"
	AckedWrites   Rule = "no acknowledged write is lost"
	OneBrain      Rule = "one etcd at a time serves"
	Budget        Rule = "disruption budgets hold"
	OwnCordons    Rule = "what a person closed stays closed"
	Unavailable   Rule = "no more nodes are out of service than may be"
	OwnTokens     Rule = "nobody is given a join token while it is good for any Node"
	Believed      Rule = "whoever dials an endpoint finds its name in the certificate of every API server"
	Owner         Rule = "a host is the manifest's or one Machine's, and nobody else changes it"
	Readable      Rule = "no Secret is stored by a key that an API server, or the next one on its host, does not have"
	Trusted       Rule = "no member of etcd shows another what a key has signed that this one does not trust"
	Hooked        Rule = "a node is opened only when the hooks after its upgrade have succeeded"
	Told          Rule = "a run that says that the cluster matches names cluster DNS where it does not run"
	Converged     Rule = "after the faults the next runs end in an empty plan, and every node is open"
)

// Violation is a rule that was broken.
type Violation struct {
	Rule   Rule
	Detail string
	At     int64 // the world's time
}

// Error is the violation in words.
func (v *Violation) Error() string { return fmt.Sprintf("at %d s: %s: %s", v.At, v.Rule, v.Detail) }

// Checker watches one world.
type Checker struct {
	World *world.World
	// Wanted are the names of the manifest's hosts, Workers how many workers may be out of service at a time.
	Wanted  map[string]bool
	Workers int
	// Forced says that a person allowed pods to be deleted when a drain takes too long.
	Forced bool
	// Left are the names of hosts that the manifest has had and has not now: they are nobody's business but a person's.
	Left map[string]bool
	// Recoveries is how many times an etcd was begun anew from what an earlier one had.
	Recoveries int

	approved   map[string]plan.Plan
	granted    map[string]Grant       // what a person has allowed a run besides what apply may do
	holder     map[string]string      // the run that last took a host's lock
	taken      map[string]int64       // of each host, when its lock was last taken
	robbed     map[string]bool        // of each host, whether that was by force
	leases     map[string]bool        // runs that have taken the cluster's Lease
	lessee     string                 // the last one of them,
	leasedAt   int64                  // when it did so,
	forced     bool                   // and whether it did so whatever the one before did
	wakes      map[string]int64       // of each run that stood still, when it last went on
	byHand     map[string]bool        // Nodes that a person closed
	late       map[string]bool        // Nodes closed by runs that could not know yet that their lock was taken
	leftClosed map[string]bool        // Nodes closed by runs when a manifest left them out, and since
	served     map[string]int64       // when the member of an address was last seen to serve,
	serving    map[string]int64       // since when it does without a break,
	lived      map[string]int64       // and when it last had done so for longer than anybody can overlook
	checked    int                    // the world's version that State saw last
	begins     map[world.Author]int64 // when steps began on their hosts
	quorate    int64                  // when etcd last had a quorum
	without    int64                  // when it last had none
	from       map[int]int            // the etcd cluster of whose data a restored one was made, by its ID
	// wasIntact are hosts of which everything worked when State saw them last, and intactSince since when it does.
	wasIntact   map[string]bool
	intactSince map[string]int64
	first       *Violation
}

// Grant is what a person has asked of a run besides what apply may do. The zero value is an apply with the manifest of
// the beginning.
type Grant struct {
	Leaves   map[string]bool // IDs of hosts that leave the cluster although they live
	Ends     bool            // the whole cluster ends
	Recovers bool            // etcd begins anew
	Chosen   bool            // on the host that a person has chosen
	Limited  bool            // it is about the hosts that a person has named
	Hooked   bool            // its manifest has hooks after upgrades
	Machine  string          // the UID of the Machine that it is about; empty: hosts of the manifest
	// Wanted are the IDs of the hosts of the run's manifest; nil are those of the beginning.
	Wanted map[string]bool
	// Places are the IDs of the machines at which the run's hosts were found, by the host's ID.
	Places map[string]identity.ProbeKey
}

// New is a checker of the world, and watches it from now on.
func New(w *world.World, wanted []string, workers int) *Checker {
	c := &Checker{World: w, Wanted: map[string]bool{}, Workers: workers}
	c.approved, c.granted = map[string]plan.Plan{}, map[string]Grant{}
	c.served, c.begins = map[string]int64{}, map[world.Author]int64{}
	c.serving, c.lived = map[string]int64{}, map[string]int64{}
	c.wakes, c.robbed = map[string]int64{}, map[string]bool{}
	c.holder, c.byHand = map[string]string{}, map[string]bool{}
	c.late = map[string]bool{}
	c.leftClosed, c.from = map[string]bool{}, map[int]int{}
	c.wasIntact, c.intactSince = map[string]bool{}, map[string]int64{}
	c.taken, c.leases = map[string]int64{}, map[string]bool{}
	for _, name := range wanted {
		c.Wanted[name] = true
	}
	w.Watch = c.effect
	return c
}

// Found is the first violation, nil as long as there is none.
func (c *Checker) Found() *Violation { return c.first }

// Break notes a violation that is found elsewhere.
func (c *Checker) Break(rule Rule, format string, args ...any) {
	if c.first == nil {
		c.first = &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...), At: c.World.Now}
	}
}

// Approve notes the plan that a person said yes to, and what else was asked for.
func (c *Checker) Approve(run string, p plan.Plan, g Grant) {
	c.approved[run], c.granted[run] = p, g
}

// Begin checks the approved plan of a run that begins to carry it out, for what was found by a look that began then.
func (c *Checker) Begin(run string, look int64) {
	p, g := c.approved[run], c.granted[run]
	for _, s := range p.Steps {
		h := c.World.Host(s.Host)
		if h == nil || g.Leaves[h.ID] || g.Recovers && h.ControlPlane { // which has its own rule
			continue
		}
		if world.Repairs(s.Intent.Kind) && c.intact(h) && c.intactSince[h.ID] <= look {
			c.Break(Untouched, "step %s is about %s, which is well", s.ID, h.Name)
		}
	}
}

// intact reports whether the host is a member of which everything works and nothing is lost.
func (c *Checker) intact(h *world.Host) bool { return c.Well(h) && !h.Lacks() }

// repaired notes since when hosts are intact.
func (c *Checker) repaired() {
	for _, h := range c.World.Hosts {
		switch was := c.wasIntact[h.ID]; {
		case was == c.intact(h):
			continue
		case !was:
			c.intactSince[h.ID] = c.World.Now
		}
		c.wasIntact[h.ID] = !c.wasIntact[h.ID]
	}
}

// Well reports whether the host is a member of which everything works.
func (c *Checker) Well(h *world.Host) bool {
	return h.Up && h.Disk.Joined() && h.Run.Kubelet && h.Run.Containerd && (!h.ControlPlane || c.World.APIReady(h))
}

func (c *Checker) effect(e world.Effect) {
	if c.first != nil {
		return
	}
	switch e.Verb {
	case world.LockTaken:
		c.lock(e)
	case world.LeaseTaken:
		c.lease(e)
	case world.Forgotten:
		c.forgotten(e)
	default:
		c.done(e)
	}
}

// done checks what a step does.
func (c *Checker) done(e world.Effect) {
	c.planned(e)
	c.owned(e)
	if e.Verb != world.Restricted {
		c.alone(e)
	}
	switch e.Verb {
	case world.Begun:
		c.begins[e.By] = c.World.Now
		c.token(e)
	case world.Removed:
		c.removed(e)
	case world.Promoted:
		c.promoted(e)
	case world.EtcdStopped:
		c.stopped(e)
		c.single(e)
	case world.APIChanged:
		c.changed(e)
		c.single(e)
	case world.KubeletChanged:
		c.kubelet(e)
	case world.RingMade:
		c.begun(e)
	case world.Deleted, world.MovedAside:
		c.deleted(e)
	case world.Purged:
		c.purged(e)
	case world.Cordoned:
		c.late[e.Host.Name] = c.leases[e.By.Run] && c.lessee != e.By.Run || c.holder[e.Host.ID] != e.By.Run
	case world.Evicted:
		c.evicted(e)
	case world.Uncordoned:
		c.opened(e)
	case world.NodeDeleted:
		c.nodeDeleted(e)
	}
}

// planned checks that the effect is of a step that was approved, on the host for which it was.
func (c *Checker) planned(e world.Effect) {
	p, ok := c.approved[e.By.Run]
	if !ok {
		c.Break(Planned, "run %s %s %s, and nobody approved a plan of it", e.By.Run, e.Verb, name(e.Host))
		return
	}
	s, ok := p.Step(e.By.Step)
	if !ok || s.Host != e.By.Host || s.Intent.Kind != e.By.Kind {
		c.Break(Planned, "step %s of run %s %s %s, and is not in its plan", e.By.Step, e.By.Run, e.Verb, name(e.Host))
		return
	}
	if h := e.Host; h != nil && e.Verb != world.Begun && s.Host == h.ID && h.Disk.Joined() && s.Intent.Role != "" &&
		h.Disk.Marker.Role != s.Intent.Role && !c.leavesGone(e) {
		c.Break(Role, "step %s takes %s for a %s, and it has joined as a %s", s.ID, h.Name, s.Intent.Role,
			h.Disk.Marker.Role)
	}
	// Who is silent at an address that is another host's ID has one by which the world does not know it.
	placed := (e.Verb == world.NodeDeleted || e.Verb == world.Removed) && e.Host != nil &&
		c.World.Host(s.Host) == nil && c.granted[e.By.Run].Places[s.Host] == identity.ProbeKey(e.Host.ID)
	if e.Host != nil && s.Host != "" && s.Host != e.Host.ID && !placed {
		c.Break(Planned, "step %s is about %s, and %s %s", s.ID, s.Host, e.Verb, e.Host.Name)
	}
}

// owned checks that the host which a step works on is its run's, by what the host has noted.
func (c *Checker) owned(e world.Effect) {
	if e.Host == nil || e.Verb == world.Begun || !e.By.Kind.OnHost() {
		return
	}
	if m := e.Host.Disk.Marker; m != nil && m.Machine != c.granted[e.By.Run].Machine {
		c.Break(Owner, "step %s of run %s, for Machine %q, %s %s, which belongs to Machine %q", e.By.Step, e.By.Run,
			c.granted[e.By.Run].Machine, e.Verb, e.Host.Name, m.Machine)
	}
}

// leavesGone reports whether only the Node is deleted of a host that is to leave and of which nothing runs: that is the
// same in each role.
func (c *Checker) leavesGone(e world.Effect) bool {
	return e.Verb == world.NodeDeleted && c.granted[e.By.Run].Leaves[e.Host.ID] && !e.Host.Up
}

func name(h *world.Host) string {
	if h == nil {
		return "the cluster"
	}
	return h.Name
}
