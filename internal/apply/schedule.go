package apply

import (
	"slices"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// State is how far a step is.
type State string

// The states of a step.
const (
	Waiting State = "waiting"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	Skipped State = "skipped" // a step that it needs failed, or the run was stopped
)

// Schedule says which steps may start. It is pure: steps and their results go in, the next steps come out.
//
// A step may start when all it needs is done, what it comes after is over, no other step runs on its host, and
// fewer than the allowed number of hosts are busy. Those that run where kubeone does run one at a time, and so do those
// that change etcd's membership, of which none starts after one of them failed. When the upgrade of a host fails, that
// of no other begins, unless it failed because pods did not leave and hosts of which they do not are to be skipped.
type Schedule struct {
	steps    []plan.Step
	state    map[string]State
	parallel int
	stopped  bool
}

// NewSchedule returns the schedule of a plan. At most parallel hosts are busy at a time; 0 or less means no limit.
func NewSchedule(p plan.Plan, parallel int) *Schedule {
	s := &Schedule{steps: p.Steps, state: map[string]State{}, parallel: parallel}
	for _, step := range p.Steps {
		s.state[step.ID] = Waiting
	}
	return s
}

// Running are the steps that are running, in the plan's order.
func (s *Schedule) Running() []plan.Step {
	var out []plan.Step
	for _, step := range s.steps {
		if s.state[step.ID] == Running {
			out = append(out, step)
		}
	}
	return out
}

// Next marks the steps that may start now as running and returns them, in the plan's order.
func (s *Schedule) Next() []plan.Step {
	var out []plan.Step
	for _, step := range s.steps {
		if s.state[step.ID] == Waiting && s.mayStart(step) {
			s.state[step.ID] = Running
			out = append(out, step)
		}
	}
	return out
}

func (s *Schedule) mayStart(step plan.Step) bool { //nolint:gocognit // one condition after the other
	if s.stopped && !s.completesUpgrade(step) {
		return false
	}
	for _, need := range step.Needs {
		if s.state[need] != Done {
			return false
		}
	}
	for _, before := range step.After {
		if state := s.state[before]; state == Waiting || state == Running {
			return false
		}
	}
	busy := map[string]bool{}
	membership := step.Intent.Kind.ChangesMembership()
	for _, other := range s.steps {
		state := s.state[other.ID]
		if membership && (state == Running || state == Failed) && other.Intent.Kind.ChangesMembership() {
			return false
		}
		if state == Running && occupiesHost(other) {
			busy[other.Host] = true
		}
		if state == Running && onOperator(other) && onOperator(step) {
			return false
		}
	}
	if !occupiesHost(step) {
		return true
	}
	return !busy[step.Host] && (s.parallel <= 0 || len(busy) < s.parallel)
}

// onOperator reports whether the step runs where kubeone does: such steps run one at a time.
func onOperator(s plan.Step) bool { return s.Intent.Kind.Place() == step.OnOperator }

// occupiesHost reports whether the step runs on its host; others only ask the API about it.
func occupiesHost(s plan.Step) bool { return s.Intent.Kind.OnHost() }

// Finish notes a running step's result. When it failed, the steps that need it, directly or not, are skipped; they are
// returned, in the plan's order.
func (s *Schedule) Finish(id string, ok bool) []plan.Step {
	if ok {
		s.state[id] = Done
		return nil
	}
	s.state[id] = Failed
	failed := s.intentOf(id)
	return s.skipWaiting(func(step plan.Step) bool {
		switch kind := step.Intent.Kind; {
		case kind.ChangesMembership() && failed.Kind.ChangesMembership():
			return true
		case step.Intent.BeginsUpgrade() && failed.HaltsUpgrade():
			return true
		}
		return slices.ContainsFunc(step.Needs, func(need string) bool {
			return s.state[need] == Failed || s.state[need] == Skipped
		})
	})
}

func (s *Schedule) intentOf(id string) step.Intent {
	for _, of := range s.steps {
		if of.ID == id {
			return of.Intent
		}
	}
	return step.Intent{}
}

// skipWaiting marks waiting steps that match as skipped, again until none matches.
func (s *Schedule) skipWaiting(match func(plan.Step) bool) []plan.Step {
	var out []plan.Step
	for again := true; again; {
		again = false
		for _, step := range s.steps {
			if s.state[step.ID] == Waiting && match(step) {
				s.state[step.ID] = Skipped
				out = append(out, step)
				again = true
			}
		}
	}
	return out
}

// Stop lets nothing more start, but that hosts which are upgraded, or being upgraded, are opened again. It returns
// the steps that never will start.
func (s *Schedule) Stop() []plan.Step {
	s.stopped = true
	return s.skipWaiting(func(step plan.Step) bool { return !s.completesUpgrade(step) })
}

// completesUpgrade reports whether the step uncordons a host whose whole upgrade was begun, or is a hook between the
// two.
func (s *Schedule) completesUpgrade(step plan.Step) bool {
	if !step.Intent.Kind.Uncordons() && !step.Intent.EndsUpgrade() {
		return false
	}
	return !slices.ContainsFunc(step.Needs, func(need string) bool {
		state := s.state[need]
		return state != Done && state != Running && (state != Waiting || !s.isClosingHook(need))
	})
}

// isClosingHook reports whether the step with that ID is such a hook.
func (s *Schedule) isClosingHook(id string) bool {
	return slices.ContainsFunc(s.steps, func(step plan.Step) bool {
		return step.ID == id && step.Intent.EndsUpgrade() && s.completesUpgrade(step)
	})
}

// LeftCordoned are the drains after which nothing has happened to their host, and nothing will: its upgrade or its
// reset has not begun, nor has its member left etcd. The host is as it was, and closed.
func (s *Schedule) LeftCordoned() []plan.Step {
	var out []plan.Step
	for _, drain := range s.steps {
		if drain.Intent.Kind.Cordons() && s.state[drain.ID] == Done &&
			slices.ContainsFunc(s.steps, func(next plan.Step) bool {
				return slices.Contains(next.Needs, drain.ID) && next.Host == drain.Host && s.cameToNothing(next)
			}) {
			out = append(out, drain)
		}
	}
	return out
}

// cameToNothing reports whether a step that follows a drain has left its host as it was.
func (s *Schedule) cameToNothing(next plan.Step) bool {
	switch state := s.state[next.ID]; {
	case next.Intent.Kind.AllOrNothing():
		return state == Skipped || state == Failed
	case next.Intent.Kind.OnHost():
		return state == Skipped
	}
	return false
}

// Busy reports whether a step is running.
func (s *Schedule) Busy() bool {
	for _, state := range s.state {
		if state == Running {
			return true
		}
	}
	return false
}

// Count returns how many steps are in the state.
func (s *Schedule) Count(want State) int {
	n := 0
	for _, state := range s.state {
		if state == want {
			n++
		}
	}
	return n
}
