package engine

import (
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/plan"
	"kubeone/internal/problem"
)

// A recovery that has ended looks until all is well. It does not wait for what does not change by waiting: an addon
// that is another, a version, a person.
func TestNobodyWaitsForWhatWaitingDoesNotChange(t *testing.T) {
	t.Parallel()
	person := []problem.Instruction{{Host: "192.0.2.21"}}
	for name, c := range map[string]struct {
		route    fsm.Route
		operator []problem.Instruction
		comingUp []string
		stays    bool
	}{
		"an addon is another":              {route: fsm.Resources, stays: true},
		"another version is wanted":        {route: fsm.Upgrade, stays: true},
		"the configuration differs":        {route: fsm.Reconfigure, stays: true},
		"the endpoint moves":               {route: fsm.MoveEndpoint, stays: true},
		"a person must act":                {route: fsm.Instruct, operator: person, stays: true},
		"units may come up":                {route: fsm.Repair},
		"a member may come up":             {route: fsm.Resources, comingUp: []string{"192.0.2.11"}},
		"a member may, and a person would": {route: fsm.Instruct, operator: person, comingUp: []string{"192.0.2.11"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Proposal{
				Decisions: []decide.Decision{{Route: c.route, ComingUp: c.comingUp}},
				Plan:      plan.Plan{Operator: c.operator},
			}
			if got := p.stays(); got != c.stays {
				t.Errorf("stays: %v", got)
			}
		})
	}
}
