package engine

import (
	"slices"
	"testing"
)

// What a run has ended with is looked at when its locks have been given back: another run may begin meanwhile, and
// nobody is told that this one goes on.
func TestTheLastLookTakesNobodysPlace(t *testing.T) {
	t.Parallel()
	s := carrying(t)
	for _, h := range s.hosts {
		h.quick = true
		h.say("absent\t/etc/kubeone/marker\n", "exists\t/etc/kubeone/marker\nfile\t/etc/kubeone/marker:cluster=demo\n"+
			"file\t/etc/kubeone/marker:run=01HRUN\nfile\t/etc/kubeone/marker:complete=no\n")
	}
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
		// Proposed, proposed again under the locks, and looked at in the end.
		if got, want := h.looks(), []bool{false, true, false}; !slices.Equal(got, want) {
			t.Errorf("%s: locked at each look: %v, want %v", id, got, want)
		}
	}
}
