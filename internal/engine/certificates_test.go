package engine

import (
	"errors"
	"strings"
	"testing"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
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

func TestARotationWhoseEndIsUnknownHasNotEnded(t *testing.T) {
	t.Parallel()
	unread := errors.New("connection refused")
	steps := []plan.Step{{ID: "rotate-ca/cp-1", Intent: step.Intent{Kind: step.RotateLearn}}}
	for name, c := range map[string]struct {
		plan   plan.Plan
		unread error
		want   string // part of Plan.Blocked; "" if it is not blocked
	}{
		"read, and nothing is left":     {},
		"not read, and nothing is left": {unread: unread, want: "connection refused"},
		"not read, and steps are left":  {plan: plan.Plan{Steps: steps}, unread: unread},
		"blocked by something else": {plan: plan.Plan{Blocked: "a host is broken"}, unread: unread,
			want: "a host is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := blockIfUnread(c.plan, c.unread).Blocked
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}
