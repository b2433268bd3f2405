package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"kubeone/internal/engine"
)

// --auto-approve also approves the plan for a changed cluster; other approvals do not.
func TestAPlanIsMadeAgainForWhoApprovesEverything(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		flags applyFlags
		ends  []error // of successive runs
		want  error
		runs  int
	}{
		"approved, changed once":     {applyFlags{approve: true}, []error{engine.ErrWorldChanged, nil}, nil, 2},
		"approved, and something is": {applyFlags{approve: true}, []error{engine.ErrWorldChanged, odd}, odd, 2},
		"approved, changed always": {applyFlags{approve: true}, []error{engine.ErrWorldChanged, engine.ErrWorldChanged,
			engine.ErrWorldChanged}, engine.ErrWorldChanged, maxPlans},
		"somebody was asked": {applyFlags{}, []error{engine.ErrWorldChanged}, engine.ErrWorldChanged, 1},
		"a saved plan": {applyFlags{approve: true, plan: "p"}, []error{engine.ErrWorldChanged},
			engine.ErrWorldChanged, 1},
	} {
		var said bytes.Buffer
		runs := 0
		c.flags.forceUnlock = true
		err := c.flags.runUntilStable(IO{Out: io.Discard, Err: &said}, func() error {
			runs++
			if c.flags.forceUnlock != (runs == 1) {
				t.Errorf("%s: run %d takes a lock over: %t", name, runs, c.flags.forceUnlock)
			}
			return c.ends[runs-1]
		})
		if !errors.Is(err, c.want) || runs != c.runs || strings.Count(said.String(), "planning again") != c.runs-1 {
			t.Errorf("%s: %d runs, %v\n%s", name, runs, err, said.String())
		}
	}
}
