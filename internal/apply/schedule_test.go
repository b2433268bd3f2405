package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"

	"github.com/google/go-cmp/cmp"
)

func stepOf(id, host string, k step.Kind, needs ...string) plan.Step {
	return plan.Step{ID: id, Host: host, Needs: needs, Intent: step.Intent{Kind: k}}
}

func ids(steps []plan.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

func TestScheduleOfKnownPlans(t *testing.T) {
	t.Parallel()
	diamond := plan.Plan{Steps: []plan.Step{
		stepOf("a", "1", step.Prepare), stepOf("b", "1", step.Images, "a"), stepOf("c", "2", step.Images, "a"),
		stepOf("d", "", step.SaveRecord, "b", "c"),
	}}
	etcd := plan.Plan{
		Steps: []plan.Step{stepOf("e1", "1", step.JoinEtcd), stepOf("e2", "2", step.JoinEtcd),
			stepOf("f2", "2", step.JoinFinish, "e2")},
	}
	wide := plan.Plan{Steps: []plan.Step{
		stepOf("p1", "1", step.Prepare), stepOf("p2", "2", step.Prepare), stepOf("p3", "3", step.Prepare),
		stepOf("n3", "3", step.NodeReady), stepOf("r", "", step.RevokeTokens),
	}}
	turns := func(onTimeout string) plan.Plan {
		drain := stepOf("d1", "1", step.DrainNode, "c1")
		drain.Intent.Params = step.DrainNodeParams{Upgrade: true, OnTimeout: onTimeout}
		second := stepOf("c2", "2", step.Check)
		second.After = []string{"u1"}
		return plan.Plan{
			Steps: []plan.Step{stepOf("c1", "1", step.Check), drain, stepOf("u1", "1", step.UpgradeWorker, "d1"),
				second},
		}
	}
	one := plan.Plan{Steps: []plan.Step{stepOf("x", "1", step.Prepare), stepOf("y", "1", step.Images)}}
	for _, c := range []struct {
		name     string
		plan     plan.Plan
		parallel int
		// dialogue: "next" starts steps; "+id" and "-id" are results; "stop" stops. After each come the steps
		// returned.
		dialogue [][]string
	}{
		{"each step after what it needs", diamond, 0, [][]string{
			{"next", "a"}, {"next"}, {"+a"}, {"next", "b", "c"}, {"+b"}, {"next"}, {"+c"}, {"next", "d"}, {"+d"},
			{"next"},
		}},
		{"what needs a failure is skipped", diamond, 0, [][]string{{"next", "a"}, {"-a", "b", "c", "d"}, {"next"}}},
		{"what does not need it goes on", diamond, 0,
			[][]string{{"next", "a"}, {"+a"}, {"next", "b", "c"}, {"-b", "d"}, {"+c"}, {"next"}}},
		{"etcd changes one at a time", etcd, 0,
			[][]string{{"next", "e1"}, {"+e1"}, {"next", "e2"}, {"+e2"}, {"next", "f2"}}},
		{"and none after a failure", etcd, 0, [][]string{{"next", "e1"}, {"-e1", "e2", "f2"}, {"next"}}},
		{"so many hosts and no more", wide, 2, [][]string{{"next", "p1", "p2", "n3", "r"}, {"+p1"}, {"next", "p3"}}},
		{"one host after another", turns("stop"), 0,
			[][]string{{"next", "c1"}, {"+c1"}, {"next", "d1"}, {"+d1"}, {"next", "u1"}, {"+u1"}, {"next", "c2"}}},
		{"no host after one that failed", turns("skip"), 0,
			[][]string{{"next", "c1"}, {"+c1"}, {"next", "d1"}, {"+d1"}, {"next", "u1"}, {"-u1", "c2"}}},
		{"a node that cannot be drained ends the upgrade", turns("stop"), 0,
			[][]string{{"next", "c1"}, {"+c1"}, {"next", "d1"}, {"-d1", "u1", "c2"}}},
		{"or is skipped", turns("skip"), 0,
			[][]string{{"next", "c1"}, {"+c1"}, {"next", "d1"}, {"-d1", "u1"}, {"next", "c2"}}},
		{"a stop in the middle of a drain", turns("stop"), 0,
			[][]string{{"next", "c1"}, {"+c1"}, {"next", "d1"}, {"stop", "u1", "c2"}, {"+d1"}, {"next"}}},
		{"one step on a host", one, 0, [][]string{{"next", "x"}, {"+x"}, {"next", "y"}}},
		{"nothing begins after a stop", wide, 1,
			[][]string{{"next", "p1", "n3", "r"}, {"stop", "p2", "p3"}, {"+p1"}, {"next"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := NewSchedule(c.plan, c.parallel)
			for i, line := range c.dialogue {
				var got []string
				switch word := line[0]; {
				case word == "next":
					got = ids(s.Next())
				case word == "stop":
					got = ids(s.Stop())
				default:
					got = ids(s.Finish(word[1:], word[0] == '+'))
				}
				if diff := cmp.Diff(line[1:], append([]string{}, got...)); diff != "" {
					t.Fatalf("line %d, %s: %s", i, line[0], diff)
				}
			}
		})
	}
}

// oracle implements the rules in their simplest form.
type oracle struct {
	steps    []plan.Step
	state    map[string]State
	parallel int
	stopped  bool
	failed   bool // a change of etcd's membership
	ended    bool // an upgrade failed, and no other may begin
}

func (o *oracle) in(s State) []plan.Step {
	return slices.DeleteFunc(slices.Clone(o.steps), func(step plan.Step) bool { return o.state[step.ID] != s })
}

func isEtcd(s plan.Step) bool {
	return s.Intent.Kind == step.JoinEtcd || s.Intent.Kind == step.RemoveEtcd
}

// forbids returns why a step may not start now; "" if it may.
func (o *oracle) forbids(s plan.Step) string {
	hosts := map[string]bool{}
	for _, r := range o.in(Running) {
		if isEtcd(r) && isEtcd(s) {
			return "etcd is being changed by " + r.ID
		}
		if r.Intent.Kind.OnHost() {
			hosts[r.Host] = true
		}
	}
	for _, n := range s.Needs {
		if o.state[n] != Done {
			return "it needs " + n
		}
	}
	for _, n := range s.After {
		if o.state[n] == Waiting || o.state[n] == Running {
			return "it comes after " + n
		}
	}
	switch {
	case o.ended && s.Intent.Kind == step.Check:
		return "the upgrade of a host failed"
	case o.stopped && !o.opens(s):
		return "the run was stopped"
	case isEtcd(s) && o.failed:
		return "a change of etcd failed"
	case !s.Intent.Kind.OnHost():
		return ""
	case hosts[s.Host]:
		return "its host is busy"
	case o.parallel > 0 && len(hosts) >= o.parallel:
		return "enough hosts are busy"
	}
	return ""
}

// opens reports whether the step runs after a stop: it uncordons a host whose whole upgrade has begun.
func (o *oracle) opens(s plan.Step) bool {
	for _, n := range s.Needs {
		if o.state[n] != Done && o.state[n] != Running {
			return false
		}
	}
	return s.Intent.Kind == step.Uncordon
}

// lost reports whether a waiting step can never start, computed from scratch.
func (o *oracle) lost(s plan.Step) bool {
	if o.stopped && !o.opens(s) || isEtcd(s) && o.failed || s.Intent.Kind == step.Check && o.ended {
		return true
	}
	return slices.ContainsFunc(s.Needs, func(n string) bool { return o.state[n] == Failed || o.state[n] == Skipped })
}

func (o *oracle) skip() (ids []string) {
	for again := true; again; {
		again = false
		for _, s := range o.in(Waiting) {
			if o.lost(s) {
				o.state[s.ID], again = Skipped, true
				ids = append(ids, s.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

func randomPlan(r *rand.Rand) plan.Plan {
	kinds := []step.Kind{
		step.Prepare, step.Images, step.JoinEtcd, step.JoinFinish, step.NodeReady, step.RevokeTokens, step.RemoveEtcd,
		step.Check, step.DrainNode, step.UpgradeWorker, step.Uncordon,
	}
	var p plan.Plan
	for i := range 1 + r.IntN(14) {
		s := stepOf(fmt.Sprintf("s%d", i), fmt.Sprintf("h%d", r.IntN(4)), kinds[r.IntN(len(kinds))])
		for _, before := range p.Steps {
			if r.IntN(6) == 0 {
				s.Needs = append(s.Needs, before.ID)
			}
			if r.IntN(12) == 0 {
				s.After = append(s.After, before.ID)
			}
		}
		if s.Intent.Kind == step.DrainNode && r.IntN(3) > 0 {
			s.Intent.Params = step.DrainNodeParams{
				Upgrade:   true,
				OnTimeout: []string{step.StopOnTimeout, step.SkipOnTimeout, step.ForceOnTimeout}[r.IntN(3)],
			}
		}
		p.Steps = append(p.Steps, s)
	}
	r.Shuffle(len(p.Steps), func(i, j int) { p.Steps[i], p.Steps[j] = p.Steps[j], p.Steps[i] })
	return p
}

func TestScheduleAgreesWithTheOracle(t *testing.T) {
	t.Parallel()
	for seed := range 5000 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		p := randomPlan(r)
		o := &oracle{steps: p.Steps, state: map[string]State{}, parallel: r.IntN(4)}
		for _, s := range p.Steps {
			o.state[s.ID] = Waiting
		}
		if err := walkWith(r, NewSchedule(p, o.parallel), o); err != nil {
			t.Fatalf("plan %d: %v\n%+v", seed, err, p.Steps)
		}
	}
}

// walkWith runs the schedule with random results to its end and compares it with the oracle after every move.
func walkWith(r *rand.Rand, s *Schedule, o *oracle) error {
	for {
		for _, next := range s.Next() {
			if why := o.forbids(next); why != "" {
				return fmt.Errorf("%s was started: %s", next.ID, why)
			}
			o.state[next.ID] = Running
		}
		for _, w := range o.in(Waiting) {
			if why := o.forbids(w); why == "" {
				return fmt.Errorf("%s could start and was not started", w.ID)
			}
		}
		running := o.in(Running)
		if s.Busy() != (len(running) > 0) || s.Count(Running) != len(running) {
			return fmt.Errorf("busy: %t, running %v", s.Busy(), ids(running))
		}
		if len(running) == 0 {
			break
		}
		if err := move(r, s, o, running); err != nil {
			return err
		}
	}
	if left := o.in(Waiting); len(left) > 0 || s.Count(Done)+s.Count(Failed)+s.Count(Skipped) != len(o.steps) {
		return fmt.Errorf("left waiting: %v", ids(left))
	}
	return nil
}

// move ends a running step or stops the run.
func move(r *rand.Rand, s *Schedule, o *oracle, running []plan.Step) error {
	var got []string
	if r.IntN(20) == 0 {
		o.stopped = true
		got = ids(s.Stop())
	} else {
		done, ok := running[r.IntN(len(running))], r.IntN(5) > 0
		o.state[done.ID] = Done
		if !ok {
			o.state[done.ID], o.failed = Failed, o.failed || isEtcd(done)
			switch d := step.ParamsOf[step.DrainNodeParams](done.Intent); {
			case slices.Contains([]step.Kind{step.Fetch, step.Check, step.Snapshot, step.UpgradeControlPlane,
				step.UpgradeWorker, step.Uncordon}, done.Intent.Kind):
				o.ended = true
			case d.Upgrade && d.OnTimeout != step.SkipOnTimeout:
				o.ended = true
			}
		}
		got = ids(s.Finish(done.ID, ok))
	}
	slices.Sort(got)
	if want := o.skip(); !slices.Equal(got, want) {
		return fmt.Errorf("skipped %v, want %v", got, want)
	}
	return nil
}

func TestWhatIsLeftCordoned(t *testing.T) {
	t.Parallel()
	upgrade := []plan.Step{stepOf("d", "1", step.DrainNode), stepOf("x", "1", step.UpgradeWorker, "d"),
		stepOf("u", "1", step.Uncordon, "x")}
	worker := []plan.Step{stepOf("d", "1", step.DrainNode), stepOf("x", "1", step.ResetHost, "d"),
		stepOf("n", "1", step.DeleteNode, "x")}
	member := []plan.Step{
		stepOf("d", "1", step.DrainNode), stepOf("s", "2", step.Snapshot), stepOf("e", "1", step.RemoveEtcd, "d", "s"),
		stepOf("x", "1", step.ResetHost, "e"),
	}
	for name, c := range map[string]struct {
		steps  []plan.Step
		fails  string // the failing step; "stop" is a stop during the drain
		closed bool
	}{
		"an upgrade that is stopped":          {upgrade, "stop", true},
		"an upgrade that fails":               {upgrade, "x", false},
		"an upgrade that is not drained":      {upgrade, "d", false}, // the step itself uncordons it
		"an upgrade":                          {upgrade, "", false},
		"a removal that is stopped":           {worker, "stop", true},
		"a reset that fails":                  {worker, "x", false},
		"a Node that cannot be deleted":       {worker, "n", false},
		"a removal":                           {worker, "", false},
		"a member's removal that is stopped":  {member, "stop", true},
		"no snapshot":                         {member, "s", true},
		"a member that must not leave":        {member, "e", true},
		"a reset that fails after its member": {member, "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewSchedule(plan.Plan{Steps: c.steps}, 0)
			for steps := s.Next(); len(steps) > 0; steps = s.Next() {
				if c.fails == "stop" {
					s.Stop()
				}
				for _, step := range steps {
					s.Finish(step.ID, step.ID != c.fails)
				}
			}
			if got := ids(s.LeftCordoned()); (len(got) > 0) != c.closed {
				t.Errorf("left closed: %v", got)
			}
		})
	}
}
