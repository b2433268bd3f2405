package engine

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
)

// The observation at the end of a run comes after its locks are released: another run may begin meanwhile and must
// not be blocked.
func TestLastObservationHoldsNoLock(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	p, err := s.Propose(t.Context(), Reset{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); err != nil {
		t.Fatal(err)
	}
	for id, h := range s.hosts {
		if len(h.begun()) == 0 {
			t.Errorf("%s: nothing was done", id)
		}
		// Proposed, proposed again under the locks, and observed at the end.
		if got, want := h.looks(), []bool{false, true, false}; !slices.Equal(got, want) {
			t.Errorf("%s: locked at each look: %v, want %v", id, got, want)
		}
	}
}

func TestAllThatHappensIsRecorded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var recorded, emitted []string
	note := func(to *[]string) func(apply.Event) {
		return func(e apply.Event) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, string(e.Type)+" "+e.Step)
		}
	}
	s := carrying(t, func(c *Config) { c.Record = note(&recorded) })
	p, err := s.Propose(t.Context(), Reset{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CarryOut(t.Context(), p, RunOptions{Emit: note(&emitted)}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(recorded)
	slices.Sort(emitted)
	all := strings.Join(recorded, "\n")
	if diff := cmp.Diff(emitted, recorded); diff != "" || !strings.Contains(all, "step-done ") {
		t.Errorf("%q\n%s", recorded, diff)
	}
}
