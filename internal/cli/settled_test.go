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
	well := engine.Proposal{Decisions: []decide.Decision{{}}}
	odd, refused := errors.New("odd"), &engine.ConfigError{Err: errors.New("a quorum would be lost")}
	for name, c := range map[string]struct {
		request  engine.Request
		first    engine.Proposal
		firstErr error
		then     error
		looks    int
	}{
		"a member is late":                     {engine.Apply{}, unhealthy, nil, nil, 1},
		"and then nobody can say":              {engine.Apply{}, unhealthy, nil, odd, 1},
		"nobody can say":                       {engine.Apply{}, engine.Proposal{}, odd, odd, 0},
		"all are well":                         {engine.Apply{}, well, nil, nil, 0},
		"certificates are renewed":             {engine.RenewCertificates{}, unhealthy, nil, nil, 1},
		"a CA is rotated":                      {engine.RotateCA{}, unhealthy, nil, nil, 1},
		"a recovery waits for nothing":         {engine.Recover{}, unhealthy, nil, nil, 0},
		"a refused recovery waits neither":     {engine.Recover{}, unhealthy, refused, refused, 0},
		"a host may leave beside it":           {engine.Remove{}, unhealthy, nil, nil, 0},
		"a host is to join again beside it":    {engine.Replace{Host: "192.0.2.12"}, unhealthy, nil, nil, 1},
		"it is itself what is replaced":        {engine.Replace{Host: "192.0.2.11"}, unhealthy, nil, nil, 0},
		"a host that is gone joins nothing":    {engine.Replace{Gone: true}, unhealthy, nil, nil, 0},
		"a host may not leave, then it may":    {engine.Remove{}, unhealthy, refused, nil, 1},
		"a host may not be replaced, nor then": {engine.Replace{}, unhealthy, refused, refused, 1},
		"a host may not be reset":              {engine.Reset{}, unhealthy, refused, nil, 1},
		"it may not leave, and all are well":   {engine.Remove{}, well, refused, refused, 0},
		"a removal fails":                      {engine.Remove{}, unhealthy, odd, odd, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &late{fails: c.then}
			var said bytes.Buffer
			c.first.Request = c.request
			p, err := settled(t.Context(), IO{Out: io.Discard, Err: &said}, cluster, c.first, c.firstErr,
				20*time.Second)
			if !errors.Is(err, c.then) || cluster.looks != c.looks {
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
		Request:   engine.Apply{},
		Decisions: []decide.Decision{{}},
		Want:      desired.Cluster{Workers: []desired.Host{{ID: "192.0.2.21"}}},
		Plan:      plan.Plan{Hosts: map[string]string{"192.0.2.21": "worker-1", "192.0.2.11": "cp-1"}},
	}
	silent.Plan.Nodes = silent.Plan.Hosts
	silent.Observed.World.Hosts = map[string]observed.Host{"192.0.2.21": {Reach: observed.Unreachable}}
	silent.Observed.World.API.Nodes = []observed.Node{{Name: "worker-1", Ready: observed.Yes}}
	for _, want := range []time.Duration{engine.HangTimeout, time.Minute} {
		cluster := &late{}
		var said bytes.Buffer
		if _, err := settled(t.Context(), IO{Out: io.Discard, Err: &said}, cluster, silent, nil,
			time.Minute); err != nil || cluster.within != want || !strings.Contains(said.String(), "worker-1") {
			t.Errorf("looked again for %s, want %s: %v, %q", cluster.within, want, err, said.String())
		}
		silent.Decisions[0].ComingUp = []string{"192.0.2.11"} // and a member, besides
	}
}
