package drive

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// Simulation is a running scenario.
type Simulation struct {
	Scenario
	World   *world.World
	Checker *safety.Checker
	// Trace receives the events as text. Nil disables it.
	Trace func(format string, args ...any)

	file    *file // the current manifest
	bare    observed.World
	dice    dice
	moment  int
	runs    int
	ops     []*operator          // operators whose run has not ended
	broken  map[*world.Host]Kind // the next command there loses its connection
	lasting []ending
	due     []Fault // operators' faults of this moment
	last    look
	// lastFile is the manifest of the last look.
	lastFile *file
	// lastView is the set of hosts in the last look.
	lastView   int
	gone       bool // the faults have destroyed etcd's quorum at some time
	recoveries int  // recoveries that have started another etcd
	Help       int  // times that a person helped
	// Recovered counts recoveries of a cluster whose quorum the faults had destroyed.
	Recovered int
	// authorities are the keys of etcd's CA.
	authorities authorities
	// machines are the existing Machines. created counts all that ever existed.
	machines []*machine
	created  int
	// settings are those of the cluster's record as controllers last saw them.
	settings int
	// answering has Early or Late for hosts that answer at the start or end of a slow round. The others answer with
	// everything else.
	answering map[*world.Host]Kind
	// before is the observation at the start of the round that ends now, or nil for a round that takes no time.
	before *observed.World

	// Read and change the rest with mu locked. The simulation holds mu except while a second passes.
	mu    sync.Mutex
	began time.Time
	ctx   context.Context //nolint:containedctx // the scenario's: runs begin at any moment
	all   sync.WaitGroup  // the runs
}

// ending is the end of a lasting fault.
type ending struct {
	at int
	do func()
}

// Report is the outcome of a scenario.
type Report struct {
	Violation *safety.Violation
	Moments   int
	Runs      int    // of apply
	Result    Result // result of the last run
	Helped    int    // machines replaced on apply's instructions
	Recovered int    // recoveries of the cluster
	Lost      bool   // the faults destroyed etcd's quorum: only a refusal was expected
}

// New prepares a scenario.
func New(s Scenario) *Simulation {
	sim := &Simulation{
		Scenario: s,
		file:     newFile(newManifest(s.ControlPlanes, s.Workers), nil),
		dice:     dice(s.Seed),
		broken:   map[*world.Host]Kind{},

		answering: map[*world.Host]Kind{}, authorities: authorities{},
	}
	names := make([]string, 0, s.ControlPlanes+s.Workers)
	for _, h := range sim.file.want.Hosts() {
		names = append(names, h.Hostname)
	}
	sim.World = sim.startWorld()
	sim.World.Pool(poolHosts(s.Pool)...)
	sim.World.Flaws = s.Off.worldFlaws()
	if s.Off == AbsentHosts {
		sim.bare = world.New(sim.file.want).Observe()
	}
	sim.Checker = safety.New(sim.World, names, sim.file.want.Upgrade.AtOnce(s.Workers))
	return sim
}

func (s *Simulation) startWorld() *world.World {
	if s.Start == Bare {
		return world.New(s.file.want)
	}
	version := Wanted
	switch {
	case s.Off == NoSkew:
		version = SkipFrom
	case s.Start == OlderPatch:
		version = OldFix
	case s.Start == OlderMinor:
		version = OldStep
	}
	want := s.file.want
	switch s.Start {
	case Missing:
		want.ControlPlane = want.ControlPlane[:max(1, len(want.ControlPlane)-1)]
		want.Workers = want.Workers[:max(0, len(want.Workers)-1)]
	case Surplus:
		want = newManifest(s.ControlPlanes+1, s.Workers)
	case Elsewhere:
		want.Endpoint.Host = otherEndpoint
	}
	w := world.Installed(want, version)
	// An unfinished or older cluster still has the binding.
	w.EtcdCluster().Objects.AnyToken = version != Wanted || s.Start == Missing
	if n := len(want.Workers); n > 1 {
		w.Deploy("shop", 2*n, 2*n-1)
	}
	w.Extend(s.file.want)
	return w
}

// throwDice returns a number below n for this moment.
func (s *Simulation) throwDice(what, n int) int { return s.dice.throwDice(s.moment*8+what+1000, n) }

// lookAtWorld returns an operator's current observation and plan. It is cached until the world changes.
func (s *Simulation) lookAtWorld() look { return s.lookFor(s.file) }

// lookFor is like look, with the given manifest.
func (s *Simulation) lookFor(f *file) look {
	if s.before != nil {
		return s.lookNow(f)
	}
	view := s.viewNumber()
	if s.last.world == s.World.Version && s.last.world != 0 && s.lastView == view && s.lastFile == f {
		return s.last
	}
	s.last, s.lastView, s.lastFile = s.lookNow(f), view, f
	return s.last
}

// lookNow is like lookFor, without the cache.
func (s *Simulation) lookNow(f *file) look {
	in, who := s.decisionInput(f)
	in = decide.Settle(in, false)
	p, decisions := plan.Build(plan.Input{Decide: in})
	l := look{plan: p, first: decisions[0], is: in.Is, world: s.seenVersion(), want: in.Want, who: who}
	if s.Off == OpenAll {
		l.plan = s.openNodes(p, in.Is)
	}
	if in, meddles := needlessStep(s.Off); meddles {
		l.plan = s.addNeedlessStep(p, in)
	}
	if s.Off == Removal && s.World.Now > 60 {
		l.plan = s.removeMember(p, in.Is)
	}
	return l
}

// openNodes returns the plan with every cordoned Node uncordoned.
func (s *Simulation) openNodes(p plan.Plan, is observed.World) plan.Plan {
	for _, n := range is.API.Nodes {
		if n.Unschedulable {
			p.Steps = append(p.Steps, plan.Step{
				ID:     "open/" + n.Name,
				Host:   s.World.Host(n.Name).ID,
				Intent: step.Intent{Kind: step.Uncordon, NodeName: n.Name, Version: n.KubeletVersion},
			})
		}
	}
	return p
}

// addNeedlessStep returns the plan with an additional step on a healthy host.
func (s *Simulation) addNeedlessStep(p plan.Plan, in step.Intent) plan.Plan {
	h := s.World.Hosts[0]
	p.Steps = append(p.Steps, plan.Step{ID: "meddle/" + h.Name, Host: h.ID, Intent: in})
	return p
}

// removeMember returns the plan with a living member removed.
func (s *Simulation) removeMember(p plan.Plan, is observed.World) plan.Plan {
	for _, m := range is.Etcd.Members {
		if m.Healthy == observed.Yes {
			p.Steps = append(p.Steps, plan.Step{
				ID:     "remove/" + m.Name,
				Intent: step.With(step.RemoveEtcdParams{Member: m.ID}),
			})
			break
		}
	}
	return p
}

// takeFault returns and clears the fault for the next command on the host.
func (s *Simulation) takeFault(h *world.Host) Kind {
	k := s.broken[h]
	if k != "" {
		delete(s.broken, h)
	}
	return k
}

func (s *Simulation) traceEvent(format string, args ...any) {
	if s.Trace != nil {
		s.Trace("%4d %s", s.moment, fmt.Sprintf(format, args...))
	}
}

// TraceEffects also traces the changes of steps.
func (s *Simulation) TraceEffects() {
	check := s.World.Watch
	s.World.Watch = func(e world.Effect) {
		where := "the cluster"
		if e.Host != nil {
			where = e.Host.Name
		}
		s.traceEvent("%s %s: %s %s %s", e.By.Run, e.By.Step, e.Verb, where, e.New)
		check(e)
	}
}
