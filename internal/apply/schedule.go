package apply

import (
	"slices"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// State is the progress of a step.
type State string

// The states of a step.
const (
	Waiting State = "waiting"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	Skipped State = "skipped" // a needed step failed, or the run was stopped
)

// Schedule decides which steps may start. It is pure: results of steps go in, the next steps come out.
//
// A step may start when all steps it needs are done, all steps it must follow have ended, its host is idle, and fewer
// than the allowed number of hosts are busy. Steps on the operator's machine run one at a time. Changes of the etcd
// membership also run one at a time, and none starts after one has failed. After a failed upgrade of a host, no other
// upgrade starts, unless only the drain failed and the manifest says to skip such hosts.
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

// Running returns the running steps, in the plan's order.
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

// onOperator reports whether the step runs on the operator's machine.
func onOperator(s plan.Step) bool { return s.Intent.Kind.Place() == step.OnOperator }

// occupiesHost reports whether the step runs on its host. Other steps only query the API about it.
func occupiesHost(s plan.Step) bool { return s.Intent.Kind.OnHost() }

// Finish records the result of a running step. After a failure it skips the steps that need it, directly or
// indirectly, and returns them in the plan's order.
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

// skipWaiting marks matching waiting steps as skipped until no more match, because a skipped step can make others
// match. It returns the skipped steps.
func (s *Schedule) skipWaiting(match func(plan.Step) bool) []plan.Step {
	var out []plan.Step
	for changed := true; changed; {
		changed = false
		for _, step := range s.steps {
			if s.state[step.ID] == Waiting && match(step) {
				s.state[step.ID] = Skipped
				out = append(out, step)
				changed = true
			}
		}
	}
	return out
}

// Stop skips all waiting steps, except those that uncordon hosts after their upgrade. It returns the skipped steps.
func (s *Schedule) Stop() []plan.Step {
	s.stopped = true
	return s.skipWaiting(func(step plan.Step) bool { return !s.completesUpgrade(step) })
}

// completesUpgrade reports whether the step uncordons a host all of whose upgrade steps have started, or is a hook
// between them.
func (s *Schedule) completesUpgrade(step plan.Step) bool {
	if !step.Intent.Kind.Uncordons() && !step.Intent.EndsUpgrade() {
		return false
	}
	return !slices.ContainsFunc(step.Needs, func(need string) bool {
		state := s.state[need]
		return state != Done && state != Running && (state != Waiting || !s.isClosingHook(need))
	})
}

// isClosingHook reports whether the step with that ID is a hook that completes an upgrade.
func (s *Schedule) isClosingHook(id string) bool {
	return slices.ContainsFunc(s.steps, func(step plan.Step) bool {
		return step.ID == id && step.Intent.EndsUpgrade() && s.completesUpgrade(step)
	})
}

// LeftCordoned returns the drains after which the host stays cordoned but otherwise unchanged. The step after the
// drain, such as its upgrade, its reset or the removal of its member, never changed the host.
func (s *Schedule) LeftCordoned() []plan.Step {
	var out []plan.Step
	for _, drain := range s.steps {
		if drain.Intent.Kind.Cordons() && s.state[drain.ID] == Done &&
			slices.ContainsFunc(s.steps, func(next plan.Step) bool {
				return slices.Contains(next.Needs, drain.ID) && next.Host == drain.Host && s.leftHostUnchanged(next)
			}) {
			out = append(out, drain)
		}
	}
	return out
}

// leftHostUnchanged reports whether a step that follows a drain left its host unchanged.
func (s *Schedule) leftHostUnchanged(next plan.Step) bool {
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

// Count returns the number of steps in the state.
func (s *Schedule) Count(want State) int {
	n := 0
	for _, state := range s.state {
		if state == want {
			n++
		}
	}
	return n
}
