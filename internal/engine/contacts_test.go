package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
)

// ours makes a host look like a worker of the cluster, so that there is something to reset.
func ours(p *player) {
	p.say("absent\t/etc/kubeone/marker", "exists\t/etc/kubeone/marker\nfile\t/etc/kubeone/marker:cluster=demo\n"+
		"file\t/etc/kubeone/marker:role=worker\nfile\t/etc/kubeone/marker:complete=yes")
}

// For every request, an unapproved host key is part of the plan. Carrying the plan out records that key and no other.
func TestFirstContactsAreApprovedWithThePlanThatListsThem(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Request{"apply": Apply{}, "reset": Reset{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			worker := s.hosts["192.0.2.21"]
			if name == "reset" {
				ours(worker)
			}
			worker.meet("SHA256:new")
			s.approver.then = func() { worker.meet("") }
			p, err := s.Propose(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"192.0.2.21": "SHA256:new"}, p.Plan.FirstContacts); diff != "" {
				t.Error(diff)
			}
			_, err = s.CarryOut(t.Context(), p, RunOptions{})
			var failed *apply.StepError
			if !errors.As(err, &failed) {
				t.Errorf("got %v, want it to begin: the players take no files", err)
			}
			if diff := cmp.Diff([]string{"SHA256:new"}, s.approver.approved); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Keys that the plan did not list are not approved: neither another key of a host in the plan nor a key of another
// host.
func TestKeysMissingFromPlanAreNotApproved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ host, approved string }{
		"another key of the host": {"192.0.2.21", ""},
		"a key of another host":   {"192.0.2.11", "SHA256:new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			s.hosts["192.0.2.21"].meet("SHA256:new")
			p, err := s.Propose(t.Context(), Apply{})
			if err != nil {
				t.Fatal(err)
			}
			s.hosts[c.host].meet("SHA256:other")
			if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.Is(err, ErrWorldChanged) {
				t.Errorf("got %v", err)
			}
			var want []string
			if c.approved != "" {
				want = []string{c.approved}
			}
			if diff := cmp.Diff(want, s.approver.approved); diff != "" {
				t.Error(diff)
			}
			if done := s.changed(); len(done) > 0 {
				t.Errorf("hosts were asked to %q", done)
			}
		})
	}
}
