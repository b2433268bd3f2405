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

// Simulation is a scenario as it happens.
type Simulation struct {
	Scenario
	World   *world.World
	Checker *safety.Checker
	// Trace is told what happens, in words; nil tells nobody.
	Trace func(format string, args ...any)

	file    *file // the manifest, as it is now
	addons  map[string]string
	bare    observed.World
	dice    dice
	moment  int
	runs    int
	ops     []*operator          // whose run has not ended
	broken  map[*world.Host]Kind // the next command there loses its connection
	lasting []ending
	due     []Fault // those of this moment of operators
	last    look
	// lastFile is for which manifest the last look was.
	lastFile *file
	// lastView is of which hosts the last look was.
	lastView   int
	gone       bool // at some time the faults had taken the quorum of etcd for good
	recoveries int  // how many have begun another etcd
	Help       int  // how often a person helped
	// Recovered is how often a cluster was recovered whose quorum the faults had taken.
	Recovered int
	// authorities are the keys of etcd's CA.
	authorities authorities
	// machines are the Machines that there are, created how many there have been.
	machines []*machine
	created  int
	// settings are those of the cluster's record, as controllers saw them last.
	settings int
	// answering is when each host answers a look that takes time: Early or Late. Hosts that it lacks answer with
	// everything else.
	answering map[*world.Host]Kind
	// before is what there was when the look began that ends now; nil of one that takes no time.
	before *observed.World

	// The rest is read and changed with mu locked, which the simulation itself has but while a second passes.
	mu    sync.Mutex
	began time.Time
	ctx   context.Context //nolint:containedctx // that of the scenario, in which runs begin at any moment
	all   sync.WaitGroup  // the runs
}

// ending is when something that lasts is over.
type ending struct {
	at int
	do func()
}

// Report is what became of a scenario.
type Report struct {
	Violation *safety.Violation
	Moments   int
	Runs      int    // of apply
	Result    Result // of the last one
	Helped    int    // machines replaced on apply's instructions
	Recovered int    // how often the cluster was recovered
	Lost      bool   // the faults took etcd's quorum: nothing but a refusal was to be expected
}

// New prepares a scenario.
func New(s Scenario) *Simulation {
	sim := &Simulation{
		Scenario: s,
		file:     newFile(manifest(s.ControlPlanes, s.Workers)),
		dice:     dice(s.Seed),
		broken:   map[*world.Host]Kind{},

		answering: map[*world.Host]Kind{}, authorities: authorities{},
	}
	sim.addons = map[string]string{"flannel": world.Addon}
	names := make([]string, 0, s.ControlPlanes+s.Workers)
	for _, h := range sim.file.want.Hosts() {
		names = append(names, h.Hostname)
	}
	sim.World = sim.start()
	sim.World.Pool(pool(s.Pool)...)
	sim.World.Flaws = s.Off.flaws()
	if s.Off == AbsentHosts {
		sim.bare = world.New(sim.file.want).Observe()
	}
	sim.Checker = safety.New(sim.World, names, sim.file.want.Upgrade.AtOnce(s.Workers))
	return sim
}

func (s *Simulation) start() *world.World {
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
		want = manifest(s.ControlPlanes+1, s.Workers)
	case Elsewhere:
		want.Endpoint.Host = otherEndpoint
	}
	w := world.Installed(want, version)
	// Who made these clusters left it so.
	w.EtcdCluster().Objects.AnyToken = version != Wanted || s.Start == Missing
	if n := len(want.Workers); n > 1 {
		w.Deploy("shop", 2*n, 2*n-1)
	}
	w.Extend(s.file.want)
	return w
}

// throw is a number below n for this moment.
func (s *Simulation) throw(what, n int) int { return s.dice.throw(s.moment*8+what+1000, n) }

// look is what an operator sees and plans now. As long as the world is the same, so is the look.
func (s *Simulation) look() look { return s.lookFor(s.file) }

// lookFor is the same with that manifest.
func (s *Simulation) lookFor(f *file) look {
	if s.before != nil {
		return s.lookNow(f)
	}
	view := s.view()
	if s.last.world == s.World.Version && s.last.world != 0 && s.lastView == view && s.lastFile == f {
		return s.last
	}
	s.last, s.lastView, s.lastFile = s.lookNow(f), view, f
	return s.last
}

// lookNow is the same, worked out anew.
func (s *Simulation) lookNow(f *file) look {
	in, who := s.input(f)
	in = decide.Settle(in, false)
	p, decisions := plan.Build(plan.Input{Decide: in})
	l := look{plan: p, first: decisions[0], is: in.Is, world: s.seenVersion(), want: in.Want, who: who}
	if s.Off == OpenAll {
		l.plan = s.opening(p, in.Is)
	}
	if in, meddles := needless(s.Off); meddles {
		l.plan = s.meddling(p, in)
	}
	if s.Off == Removal && s.World.Now > 60 {
		l.plan = s.removing(p, in.Is)
	}
	return l
}

// opening is the plan with every closed Node opened.
func (s *Simulation) opening(p plan.Plan, is observed.World) plan.Plan {
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

// meddling is the plan with that done to a host that needs nothing.
func (s *Simulation) meddling(p plan.Plan, in step.Intent) plan.Plan {
	h := s.World.Hosts[0]
	p.Steps = append(p.Steps, plan.Step{ID: "meddle/" + h.Name, Host: h.ID, Intent: in})
	return p
}

// removing is the plan with a living member taken out.
func (s *Simulation) removing(p plan.Plan, is observed.World) plan.Plan {
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

// breaks takes the fault that the next command on the host meets.
func (s *Simulation) breaks(h *world.Host) Kind {
	k := s.broken[h]
	if k != "" {
		delete(s.broken, h)
	}
	return k
}

func (s *Simulation) tell(format string, args ...any) {
	if s.Trace != nil {
		s.Trace("%4d %s", s.moment, fmt.Sprintf(format, args...))
	}
}

// TraceEffects tells of what steps change, too.
func (s *Simulation) TraceEffects() {
	check := s.World.Watch
	s.World.Watch = func(e world.Effect) {
		where := "the cluster"
		if e.Host != nil {
			where = e.Host.Name
		}
		s.tell("%s %s: %s %s %s", e.By.Run, e.By.Step, e.Verb, where, e.New)
		check(e)
	}
}
