package drive

import (
	"slices"
	"strings"

	"kubeone/internal/apply"
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/identity"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// Result is how a run ended.
type Result string

// The results.
const (
	Unended   Result = ""
	Matches   Result = "the cluster is as wanted"
	Refused   Result = "refused" // the route is error
	Blocked   Result = "blocked" // a route that is not carried out
	NeedsHelp Result = "needs a person"
	Held      Result = "held"          // another operator has the lock
	Changed   Result = "world changed" // since the plan was approved
	Failed    Result = "failed"        // a step failed
	Again     Result = "done, and something remains"
)

// look is one look at the world, and what follows.
type look struct {
	plan  plan.Plan
	first decide.Decision
	is    observed.World
	world int // its version; 0 of a look that took time, in which there were several
	// want is the manifest as it is carried out: its hosts where they were found, its endpoint the one that can be
	// had now, with the names that are kept.
	want desired.Cluster
	// who says which of these hosts an entry of the manifest is, and where its machine was found.
	who identity.Result
	// refused is why the request is not planned at all; nil of one that is.
	refused error
}

// state is where an operator is.
type state int

const (
	looking state = iota
	locking
	leasing
	lookingAgain
	running
	releasing
	forgetting
	verifying
)

// operator is one run of apply. Each of its moves is one command, request or look.
type operator struct {
	sim     *Simulation
	run     string
	number  int
	force   bool
	old     bool    // it is the program that locks all that answer, and then takes the Lease by force
	file    *file   // the manifest with which it began
	request request // what it was asked for
	alone   string  // ID of the worker that it works on alone; empty for the cluster
	// machine is the Machine about which it is, of a controller, as it was wanted when the run began, and follows that
	// Machine as it is by now; nil for the cluster.
	machine, follows *machine

	state  state
	result Result
	plan   look
	scope  plan.Scope
	hosts  []*world.Host // whose lock it takes
	next   int
	locks  map[string]int64
	denied map[string]bool // workers whose lock it did not get
	held   bool            // another run has some host's lock
	lease  tenure
	sched  *apply.Schedule
	calls  []*attempt
	sent   map[string]bool // hosts that have their script
	// What the run knows besides: what it saw when its plan was approved, whether it can log in to the API, when
	// it made each host's join token, and since when it opens nodes again at its end.
	approved  observed.World
	access    bool
	tokens    map[string]int64
	reopening int64
	failed    bool
	asked     bool  // the schedule has nothing more to start for now
	told      bool  // a host or the Lease has said that it is another's
	wake      int   // the moment until which it stands still
	until     int64 // the end of a wait for members that come up, or for the world to match
	rounds    int   // plans made because the world had changed
	// began is what there was when the look began that it is at, at lookBegan, and that lasts until seeing.
	began             *observed.World
	lookBegan, seeing int64
}

// move does one thing.
func (o *operator) move() {
	if o.looks() && !o.hasSeen() {
		return
	}
	o.act()
	o.began, o.sim.began = nil, nil
}

func (o *operator) act() {
	switch o.state {
	case looking:
		o.look()
	case locking:
		o.lock()
	case leasing:
		o.leaseFirst()
	case lookingAgain:
		o.compare()
	case running:
		o.walk()
	case releasing:
		o.release()
	case forgetting:
		o.forget()
	case verifying:
		o.verify()
	}
}

// look looks until no step of an earlier run runs and no member is coming up, and decides whether there is
// anything to do.
func (o *operator) look() {
	w := o.sim.World
	for _, h := range w.Hosts {
		only := o.alone == "" && o.machine == nil || o.alone == h.ID || o.isFor(h)
		if h.Reached() && !h.Outside && h.Run.Unit != nil && only {
			return // awaited
		}
	}
	l := o.seen()
	if o.until == 0 {
		o.until = w.Now + settle
	}
	waits := comingUp(l) || l.matches() && o.sim.lacks(l)
	if o.alone == "" && o.machine == nil && o.request.applies() && waits && w.Now < o.until {
		return
	}
	o.plan = l
	if o.sim.Trace != nil {
		o.sim.tell("%s decides %s", o.run, l.why())
	}
	switch {
	case l.refused != nil:
		o.end(Refused)
	case o.machine != nil && l.first.Route != fsm.Nothing && len(l.plan.Steps) == 0:
		o.end(Again) // it is asked about again and again
	case !o.request.applies() && len(l.plan.Steps) == 0:
		o.end(Again)
	case !o.request.applies():
		o.approve()
	case l.first.Route == fsm.Error:
		o.end(Refused)
	case l.plan.Blocked != "":
		o.end(Blocked)
	case l.plan.Empty():
		o.matched(l)
	case len(l.plan.Steps) == 0:
		o.end(NeedsHelp)
	default:
		o.approve()
	}
}

// approve says yes, to the very plan that was shown.
func (o *operator) approve() {
	o.sim.Checker.Approve(o.run, o.plan.plan, o.grant())
	o.hosts, o.next, o.locks, o.denied, o.state = nil, 0, map[string]int64{}, map[string]bool{}, locking
	o.approved, o.access, o.reopening = o.plan.is, o.plan.is.API.Reached == observed.Yes, 0
	if o.request.command == recoverCluster { // what still answers there is not the cluster that will be
		o.approved.API.Reached, o.access = observed.No, false
	}
	o.tokens, o.held = map[string]int64{}, false
	if o.old {
		o.sim.Checker.Old(o.run)
	}
	o.sim.World.Ordered(o.run, world.Order{
		Endpoint: o.plan.want.Endpoint, Epoch: plan.Epoch(o.plan.plan, o.plan.want, o.plan.is),
		Machine: o.uid(), Config: SettingsOf(o.plan.want),
		Encrypted: o.plan.want.EncryptSecrets, Owed: owed(o.plan.plan),
	})
	o.scope = plan.LockScope(o.plan.plan, o.plan.want, o.plan.is)
	for _, h := range o.sim.World.Hosts {
		blind := o.sim.Off == AbsentHosts && !h.Reached()
		if o.old && h.Reached() && !h.Outside || !o.old && !blind && slices.Contains(o.scope.Hosts, h.ID) {
			o.hosts = append(o.hosts, h)
		}
	}
	if o.sim.Off == NoLock || o.sim.Off == NoWorkerLock && (o.alone != "" || o.machine != nil) {
		o.state = lookingAgain
	}
}

func comingUp(l look) bool {
	for _, a := range l.first.Hosts {
		if a.Condition == condition.Unready || a.Condition == condition.Broken {
			return true
		}
	}
	return false
}

// compare looks again: a plan that is another now is not run.
func (o *operator) compare() {
	now := o.seen()
	switch {
	case o.sim.Off == NoCompare && now.refused == nil:
	case now.refused != nil:
		o.finish(Refused)
		return
	case plan.ControlPlaneBusy(now.want, now.is): // what a host is when its step has ended, no plan of now can say
		o.finish(Changed)
		return
	case (now.world == 0 || now.world != o.plan.world) && now.plan.Digest() != o.plan.plan.Digest():
		o.finish(Changed)
		return
	}
	o.plan, o.state = now, running
	o.sim.Checker.Begin(o.run, o.lookBegan)
	o.sched, o.sent = apply.NewSchedule(o.sim.altered(now.plan), 0), map[string]bool{}
}

// walk starts what may start, and lets one of the running steps get on.
func (o *operator) walk() {
	if o.sim.lost(o) { // another run has the lock now: nothing more is begun, and what goes through the API ends
		o.calls, o.failed, o.state = nil, true, releasing
		return
	}
	if !o.asked { // what may start changes only when something has ended
		o.asked = true
		for _, s := range o.sched.Next() {
			o.calls = append(o.calls, &attempt{op: o, step: s, began: o.sim.World.Now})
		}
	}
	if len(o.calls) == 0 {
		o.reopen()
		return
	}
	i := o.sim.throw(1, len(o.calls))
	a := o.calls[i]
	ended, ok := a.move()
	if !ended {
		return
	}
	o.failed = o.failed || !ok
	o.calls = slices.Delete(o.calls, i, i+1)
	o.note(a.step, ok)
	o.skip(o.sched.Finish(a.step.ID, ok))
	o.asked = false
}

// note tells how a step ended.
func (o *operator) note(s plan.Step, ok bool) {
	switch {
	case o.sim.Ended == nil:
	case ok:
		o.sim.Ended(o.run, s.ID, apply.Done)
	default:
		o.sim.Ended(o.run, s.ID, apply.Failed)
	}
}

// skip tells of steps that will not begin.
func (o *operator) skip(steps []plan.Step) {
	if o.sim.Ended == nil {
		return
	}
	for _, s := range steps {
		o.sim.Ended(o.run, s.ID, apply.Skipped)
	}
}

// reopen opens the Nodes that were closed for an upgrade which then did not begin, and ends the walk.
func (o *operator) reopen() {
	w, left := o.sim.World, o.sched.LeftCordoned()
	if o.reopening == 0 {
		o.reopening = w.Now
	}
	switch reached := w.APIReached(); {
	case len(left) > 0 && o.access && !reached && w.Now-o.reopening <= uncordonTimeout:
		return // asked again
	case o.access && reached:
		for _, s := range left {
			w.Uncordon(world.Author{Run: o.run, Step: s.ID, Host: s.Host, Kind: s.Intent.Kind}, s.Intent.NodeName)
		}
	}
	o.failed, o.state = o.failed || len(left) > 0, releasing
}

// finish gives the locks up and ends.
func (o *operator) finish(r Result) {
	o.result = r
	o.unlock()
	if r == Changed && o.rounds < 2 {
		o.rounds++
		o.run, o.lease, o.told = o.run+"'", tenure{}, false // another plan is another run
		o.result, o.state, o.until = Unended, looking, 0
	}
}

func (o *operator) end(r Result) { o.result = r }

func (o *operator) release() {
	o.unlock()
	switch {
	case o.failed:
		o.end(Failed)
	case o.alone != "":
		o.end(Matches)
	case o.machine != nil && o.machine.gone:
		o.state = forgetting
	case o.machine != nil:
		o.end(Again) // and looks again
	case !o.request.applies():
		o.state = o.request.next()
	case !o.plan.plan.Complete():
		o.end(Again)
	default:
		o.state, o.until = verifying, o.sim.World.Now+settle
	}
}

// verify looks until the cluster is as wanted.
func (o *operator) verify() {
	l, late := o.sim.lookFor(o.file), o.sim.World.Now > o.until
	switch {
	case l.matches() && (late || !o.sim.lacks(l)):
		o.matched(l)
	case late:
		o.end(Again)
	}
}

// matches reports whether nothing is left to do, as far as was seen.
func (l look) matches() bool { return l.plan.Empty() && l.first.Route != fsm.Error }

// lacks reports whether components do not run that must.
func (s *Simulation) lacks(l look) bool {
	return s.Off != NoPods && len(decide.NotRunning(l.want.Network, l.is.API)) > 0
}

// matched ends a run in which the operator is told that the cluster matches, and what does not run nevertheless.
func (o *operator) matched(l look) {
	o.end(Matches)
	dns := slices.ContainsFunc(l.is.API.Pods, func(p observed.Pod) bool {
		return p.App == world.DNSApp && p.Ready == observed.Yes
	})
	named := o.sim.Off != NoPods && slices.ContainsFunc(l.plan.Unlike, func(what string) bool {
		return strings.HasPrefix(what, "cluster DNS ")
	})
	if l.is.API.Reached == observed.Yes && o.machine == nil && dns == named {
		o.sim.Checker.Break(safety.Told, "%s: cluster DNS runs: %t; named as what does not: %t", o.run, dns, named)
	}
}

// command does something on a host by its connection; false means that the connection broke, and then nobody
// knows what was done.
func (o *operator) command(h *world.Host, do func()) bool {
	if !h.Reached() {
		return false
	}
	switch o.sim.breaks(h) {
	case LostBefore:
		return false
	case LostAfter, LostDuring:
		do()
		return false
	}
	do()
	return true
}
