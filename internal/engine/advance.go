package engine

import (
	"context"
	"fmt"
	"slices"

	"kubeone/internal/apply"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// Progress is how far a proposal is that is carried out by calls of Advance. Its caller keeps it from one call to
// the next, also over a restart: it is plain data, can be written as JSON, has no secrets, and with it any engine
// for the cluster goes on.
type Progress struct {
	RunID  string           `json:"runID"`
	Plan   plan.Plan        `json:"plan"`             // as it was approved
	Scope  *plan.Scope      `json:"scope,omitempty"`  // what is locked; nil before the first call
	Locks  map[string]int64 `json:"locks,omitempty"`  // generations of the hosts' locks, by host ID
	Leased bool             `json:"leased,omitempty"` // the run has had the cluster's Lease
	Run    apply.Progress   `json:"run"`
}

// Start is the progress of a proposal that somebody has approved and that is to be carried out by Advance. It
// changes nothing. Who keeps it before the first call of Advance can be killed at any moment, and another process
// goes on.
func (e *Engine) Start(approved Proposal) Progress {
	return Progress{RunID: e.NewRunID(), Plan: approved.Plan}
}

// Over reports whether nothing is left to do, or can be done.
func (p Progress) Over() bool { return p.Run.Over }

// Failures are what went wrong so far, in words.
func (p Progress) Failures() []string { return slices.Clone(p.Run.Failures) }

// Step is how far a step of the plan is.
func (p Progress) Step(id string) apply.State { return p.Run.State(id) }

// Advance carries a proposal out as CarryOut does, but only as far as it goes without waiting: see apply.Run.Pass.
// Its caller calls it again, with what it returned, until that is Over, and then proposes again to see whether
// anything is left. The request is the one that was proposed. RunOptions.RunID is not looked at.
//
// The first call is like the beginning of CarryOut: it refuses what must not be carried out, and a plan that is not
// the same any more (ErrWorldChanged). From then on the plan stays. The locks are held during a call. In between,
// another run may take them; this one then ends with a *TakenError, and its caller proposes again. The cluster's
// Lease is given back by the call after which the run is over, or runs out.
//
// An error is what failed in this call, in steps (*apply.StepError) or before; the run may go on all the same, as
// the progress says.
func (e *Engine) Advance(ctx context.Context, r Request, at Progress, o RunOptions) (Progress, error) {
	if at.Over() {
		return at, nil
	}
	s, err := e.takeUp(ctx, r, at, o)
	if err != nil {
		return at, err
	}
	if at.Scope == nil {
		scope := s.locks.scope
		at.Scope = &scope
	}
	err = s.locks.guard(ctx, func(ctx context.Context) (err error) {
		at.Run, err = s.run.Pass(ctx, at.Run, stopped(o.Stop))
		return err
	})
	s.locks.kept(&at)
	if !at.Over() {
		s.locks.leave()
		return at, err
	}
	s.locks.release(ctx)
	if err == nil && len(at.Run.Failures) == 0 && forgets(r) {
		err = e.forget(ctx, s.now, s.run.RunID)
	}
	return at, err
}

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// takeUp is all that comes before the first step of a call. Callers release the locks of a session without an error.
func (e *Engine) takeUp(ctx context.Context, r Request, at Progress, o RunOptions) (session, error) {
	if at.Plan.Format != plan.FormatVersion {
		return session{},
			&ConfigError{fmt.Errorf("the plan has format %d, this version carries out format %d; plan again",
				at.Plan.Format, plan.FormatVersion)}
	}
	seen, err := e.Observe(ctx)
	if err != nil {
		return session{}, err
	}
	o.RunID = at.RunID
	if at.Scope != nil {
		o.since = &at
		p := e.recognised(r, seen)
		p.Plan = at.Plan
		return e.resume(ctx, p, *at.Scope, o)
	}
	p, err := e.propose(ctx, r, seen, at.Plan.FirstContacts)
	if err != nil {
		return session{}, err
	}
	if err := p.Refusal(); err != nil {
		return session{}, err
	}
	if p.Plan.Digest() != at.Plan.Digest() {
		return session{}, ErrWorldChanged
	}
	return e.begin(ctx, p, o)
}

// resume takes up a plan in the middle. What it would do to a host must be what was approved.
func (e *Engine) resume(ctx context.Context, p Proposal, scope plan.Scope, o RunOptions) (session, error) {
	s := session{now: p}
	if len(p.who.Contradictions) > 0 {
		return s, ErrWorldChanged
	}
	known, err := e.resolve(ctx, &s.now)
	if err != nil {
		return s, err
	}
	if err := s.now.Unresolved(); err != nil {
		return s, err
	}
	if s.now.Scripts, err = scripts(s.now, known, e.cfg.Credentials); err != nil {
		return s, err
	}
	now := digests(s.now.Scripts)
	for _, of := range s.now.Plan.Steps {
		if digest, answers := now[of.Host]; answers && of.Intent.Kind.OnHost() && digest != of.Intent.Digest {
			return s, ErrWorldChanged
		}
	}
	if s.locks, err = e.lock(ctx, s.now, answering(scope, s.now), leaseOf(s.now), o); err != nil {
		return s, err
	}
	s.run = e.runOf(s.now, s.locks, o)
	return s, nil
}

// answering is the part of a scope that answers now.
func answering(s plan.Scope, p Proposal) plan.Scope {
	hosts := slices.DeleteFunc(slices.Clone(s.Hosts), func(id string) bool {
		return p.Observed.World.Hosts[id].Reach != observed.Reached
	})
	s.Complete = s.Complete && len(hosts) == len(s.Hosts)
	s.Hosts = hosts
	return s
}
