package cli

import (
	"testing"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
)

// The time of a recovery ends when members and Nodes are back for good; cluster DNS may take longer.
func TestWhenARecoveredClusterIsBack(t *testing.T) {
	t.Parallel()
	well := engine.Proposal{Request: engine.Apply{}, Decisions: []decide.Decision{{}}}
	noDNS := well
	noDNS.Observed.World.API.Reached = observed.Yes
	late := well
	late.Decisions = []decide.Decision{{ComingUp: []string{"192.0.2.11"}}}
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		looks []engine.Proposal // one a second
		want  time.Duration
	}{
		"at once":                    {[]engine.Proposal{well}, 0},
		"DNS takes longer":           {[]engine.Proposal{late, noDNS, noDNS, well}, time.Second},
		"a member is late once more": {[]engine.Proposal{well, late, well, well}, 2 * time.Second},
		"it is not, at the end":      {[]engine.Proposal{well, late, late}, 2 * time.Second},
	} {
		var timer recoveryTimer
		for i, p := range c.looks {
			timer.recordProposal(p, began.Add(time.Duration(i)*time.Second))
		}
		if got := timer.end.Sub(began); got != c.want {
			t.Errorf("%s: after %s, want %s", name, got, c.want)
		}
	}
}
