package cli

import (
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/plan"
)

// What a run waits for is said as soon as it waits, and again only when that is something else.
func TestWhatARunWaitsForIsSaidOnce(t *testing.T) {
	t.Parallel()
	waits := func(id string) engine.Proposal {
		return engine.Proposal{
			Decisions: []decide.Decision{{Route: fsm.Nothing, ComingUp: []string{id}}},
			Plan:      plan.Plan{Hosts: map[string]string{"1": "cp-1", "2": "cp-2"}},
		}
	}
	var out strings.Builder
	say := settling(&out)
	for _, p := range []engine.Proposal{waits("1"), waits("1"), waits("2")} {
		say(p)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "cp-1") || !strings.Contains(lines[1], "cp-2") ||
		!strings.HasSuffix(lines[0], "; looking again, for up to a minute") {
		t.Errorf("said %q", lines)
	}
}
