package engine

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutAClusterThereIsNothingToRenew(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), RenewCertificates{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var blocked *BlockedError
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.As(err, &blocked) ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}
