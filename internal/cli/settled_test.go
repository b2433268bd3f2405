package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/engine"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// late is a cluster whose member answers only when it is looked at again.
type late struct {
	looks  int
	within time.Duration
	fails  error
}

func (l *late) ProposeUntilUp(_ context.Context, r engine.Request, within time.Duration) (engine.Proposal, error) {
	l.looks++
	l.within = within
	return engine.Proposal{Request: r}, l.fails
}

// One look that finds a member unhealthy is not what a person is told: it may only have been late.
func TestAMemberThatMayBeLateIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	unhealthy := engine.Proposal{
		Decisions: []decide.Decision{{ComingUp: []string{"192.0.2.11"}}},
		Plan:      plan.Plan{Hosts: map[string]string{"192.0.2.11": "cp-1"}},
	}
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		request engine.Request
		first   engine.Proposal
		fails   error
		looks   int
	}{
		"a member is late":             {engine.Apply{}, unhealthy, nil, 1},
		"and then nobody can say":      {engine.Apply{}, unhealthy, odd, 1},
		"all are well":                 {engine.Apply{}, engine.Proposal{Decisions: []decide.Decision{{}}}, nil, 0},
		"certificates are renewed":     {engine.RenewCertificates{}, unhealthy, nil, 1},
		"a CA is rotated":              {engine.RotateCA{}, unhealthy, nil, 1},
		"a recovery waits for nothing": {engine.Recover{}, unhealthy, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &late{fails: c.fails}
			var said bytes.Buffer
			p, err := settled(t.Context(), IO{Out: io.Discard, Err: &said}, cluster, c.request, c.first,
				20*time.Second)
			if !errors.Is(err, c.fails) || cluster.looks != c.looks {
				t.Errorf("looked %d times more, %v", cluster.looks, err)
			}
			if c.looks > 0 && (len(p.Decisions) > 0 || cluster.within != 20*time.Second ||
				!strings.Contains(said.String(),
					"cp-1: not as it should be, and may only be late; looking again for up to")) {
				t.Errorf("the first look counted, or nobody was told: %q", said.String())
			}
			if c.looks == 0 && said.Len() > 0 {
				t.Errorf("said %q", said.String())
			}
		})
	}
}

// A host that hangs is not waited for as long as a member that comes up: it is named soon.
func TestAHostThatIsSilentIsLookedAtAgainForAShortTime(t *testing.T) {
	t.Parallel()
	silent := engine.Proposal{
		Decisions: []decide.Decision{{}},
		Want:      desired.Cluster{Workers: []desired.Host{{ID: "192.0.2.21"}}},
		Plan:      plan.Plan{Hosts: map[string]string{"192.0.2.21": "worker-1", "192.0.2.11": "cp-1"}},
	}
	silent.Observed.World.Hosts = map[string]observed.Host{"192.0.2.21": {Reach: observed.Unreachable}}
	silent.Observed.World.API.Nodes = []observed.Node{{Name: "worker-1", Ready: observed.Yes}}
	for _, want := range []time.Duration{statusPatience, time.Minute} {
		cluster := &late{}
		var said bytes.Buffer
		if _, err := settled(t.Context(), IO{Out: io.Discard, Err: &said}, cluster, engine.Apply{}, silent,
			time.Minute); err != nil || cluster.within != want || !strings.Contains(said.String(), "worker-1") {
			t.Errorf("looked again for %s, want %s: %v, %q", cluster.within, want, err, said.String())
		}
		silent.Decisions[0].ComingUp = []string{"192.0.2.11"} // and a member, besides
	}
}
