package locks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

func TestALostLockEndsTheRunAndSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	l, failed := locked(t, nil), errors.New("cp-1: join: no")
	defer l.Release(t.Context())
	err := l.Guard(t.Context(), func(ctx context.Context) error {
		close(l.Hosts.lost)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrLost) {
			t.Errorf("it ends because of %v", context.Cause(ctx))
		}
		return errors.Join(failed, ctx.Err())
	})
	var taken *TakenError
	if !errors.As(err, &taken) || !errors.Is(err, ErrLost) || !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	if errors.Is(err, context.Canceled) {
		t.Error("it looks as if the operator had aborted it")
	}
	for _, want := range []string{"another run took", "no others were started", "apply again when", "cp-1: join: no"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestTheOperatorStillAbortsARunWithALock(t *testing.T) {
	t.Parallel()
	ctx, abort := context.WithCancel(t.Context())
	l := locked(t, nil)
	defer l.Release(t.Context())
	err := l.Guard(ctx, func(ctx context.Context) error {
		abort()
		<-ctx.Done()
		return errors.Join(ctx.Err())
	})
	if taken := (*TakenError)(nil); !errors.Is(err, context.Canceled) || errors.As(err, &taken) {
		t.Errorf("got %v", err)
	}
}

func TestALockThatIsLostWhenAllIsDoneIsNoFailure(t *testing.T) {
	t.Parallel()
	l := locked(t, nil)
	defer l.Release(t.Context())
	if err := l.Guard(t.Context(), func(context.Context) error { close(l.Hosts.lost); return nil }); err != nil {
		t.Errorf("got %v", err)
	}
}

// leaseFake is a Lease with answers chosen by the test.
type leaseFake struct {
	lost      chan struct{}
	answer    func() error
	unrenewed time.Duration
	released  bool
}

func (l *leaseFake) Lost() <-chan struct{}       { return l.lost }
func (l *leaseFake) Check(context.Context) error { return l.answer() }
func (l *leaseFake) Unrenewed() time.Duration    { return l.unrenewed }
func (l *leaseFake) Taker() leaselock.Holder {
	return leaselock.Holder{Name: "bob@desk", RunID: "run-2"}
}
func (l *leaseFake) Release(context.Context) error { l.released = true; return nil }

// locked is a set about the cluster without locks on hosts, with that lease.
func locked(t *testing.T, lease Lease) *Set {
	t.Helper()
	hosts, err := TakeHosts(t.Context(), nil, Claim{})
	if err != nil {
		t.Fatal(err)
	}
	l := newSet(t.Context(), hosts, plan.Scope{Cluster: true})
	l.take = func(context.Context, cluster.Access) (Lease, error) {
		if lease == nil {
			return nil, &leaselock.HeldError{Holder: "bob@desk", RunID: "run-2"}
		}
		return lease, nil
	}
	return l
}

var (
	onHost    = plan.Step{ID: "fetch/cp-1", Host: "cp-1", Intent: step.Intent{Kind: step.Fetch}}
	onCluster = plan.Step{ID: "record", Intent: step.Intent{Kind: step.SaveRecord}}
)

func TestAStepBeginsOnlyWithTheLease(t *testing.T) {
	t.Parallel()
	silent := errors.New("no answer")
	for name, c := range map[string]struct {
		answers   []error
		unrenewed time.Duration
		want      error
	}{
		"it is ours":                        {answers: []error{nil}, unrenewed: time.Hour},
		"it is another's":                   {answers: []error{leaselock.ErrLost}, want: ErrLost},
		"no answer, just renewed":           {answers: []error{silent}, unrenewed: LeaseTrust - time.Second},
		"no answer, and then ours":          {answers: []error{silent, nil}, unrenewed: LeaseTrust},
		"no answer for long, and then ours": {answers: []error{silent, silent, nil}, unrenewed: 15 * time.Second},
		"no answer, and it was taken": {answers: []error{silent, leaselock.ErrLost},
			unrenewed: 15 * time.Second, want: ErrLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			lease := &leaseFake{lost: make(chan struct{}), unrenewed: c.unrenewed}
			lease.answer = func() error {
				next := c.answers[0]
				c.answers = c.answers[1:]
				return next
			}
			l := locked(t, lease)
			if err := l.holdLease(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := l.Check(t.Context(), onHost, nil); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
			if l.Release(t.Context()); !lease.released || len(c.answers) > 0 {
				t.Errorf("%s: released is %v, %d answers were not asked for", name, lease.released, len(c.answers))
			}
		})
	}
}

func TestRunWithoutAnswerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := &leaseFake{
			lost:      make(chan struct{}),
			unrenewed: time.Minute,
			answer:    func() error { return errors.New("connection refused") },
		}
		l, began := locked(t, lease), time.Now()
		if err := l.holdLease(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		err := l.Check(t.Context(), onHost, nil)
		if err == nil || time.Since(began) != LeaseTimeout ||
			!strings.Contains(err.Error(), "connection refused; run kubeone apply again") {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		l.Release(t.Context())
	})
}

func TestTheLeaseIsTakenBeforeTheFirstStepThroughAnAPIThatCameLater(t *testing.T) {
	t.Parallel()
	lease := &leaseFake{lost: make(chan struct{}), answer: func() error { return nil }}
	l := locked(t, lease)
	if err := l.Check(t.Context(), onHost, nil); err != nil || l.heldLease() != nil {
		t.Errorf("before: %v", err)
	}
	if err := l.Check(t.Context(), onCluster, &cluster.Access{}); err != nil || l.heldLease() == nil {
		t.Errorf("with an API: %v, lease %v", err, l.heldLease())
	}
	l.Release(t.Context())
}

func TestARunThatFindsTheLeaseTakenEnds(t *testing.T) {
	t.Parallel()
	l := locked(t, nil)
	err := l.Guard(t.Context(), func(ctx context.Context) error {
		err := l.Check(ctx, onCluster, &cluster.Access{})
		<-ctx.Done()
		return errors.Join(err)
	})
	var taken *TakenError
	if !errors.As(err, &taken) || !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "bob@desk") {
		t.Errorf("got %v", err)
	}
	l.Release(t.Context())
}

func TestARunAboutWorkersNeedsNoLease(t *testing.T) {
	t.Parallel()
	l := locked(t, nil)
	l.Scope.Cluster = false
	if err := l.Check(t.Context(), plan.Step{Intent: step.Intent{Kind: step.DrainNode}},
		&cluster.Access{}); err != nil {
		t.Errorf("got %v", err)
	}
	l.Release(t.Context())
}

func TestALostLeaseEndsTheRunAndSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	lease := &leaseFake{lost: make(chan struct{}), answer: func() error { return nil }}
	l := locked(t, lease)
	if err := l.holdLease(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	err := l.Guard(t.Context(), func(ctx context.Context) error {
		close(lease.lost)
		<-ctx.Done()
		return errors.Join(ctx.Err())
	})
	if err == nil || !strings.Contains(err.Error(), "bob@desk (run run-2)") {
		t.Errorf("got %v", err)
	}
	l.Release(t.Context())
}

func TestWhoTookTheLockIsNamed(t *testing.T) {
	t.Parallel()
	err := &TakenError{By: leaselock.Holder{Name: "bob@desk", RunID: "run-2"}}
	if !strings.Contains(err.Error(), "bob@desk (run run-2)") {
		t.Errorf("%v", err)
	}
}

// A member leaves etcd without an API, and so without the Lease.
func TestAStepThroughEtcdAloneNeedsTheLockOfEveryControlPlaneHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, removal := locked(t, nil), plan.Step{Intent: step.Intent{Kind: step.RemoveEtcd}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Check(ctx, removal, nil); err == nil || !strings.Contains(err.Error(), "the API does not answer") {
			t.Errorf("a member is removed: %v", err)
		}
		l.Scope.Complete = true // no control-plane host can contradict
		if err := l.Check(t.Context(), removal, nil); err != nil {
			t.Errorf("with the lock of every control-plane host: %v", err)
		}
		l.Release(t.Context())
	})
}

// A caller that elects a leader itself brings its own Lease: no other Lease is taken, and the run does not release
// it.
func TestALeaseOfTheCallersOwnStaysTheCallers(t *testing.T) {
	t.Parallel()
	own := &leaseFake{lost: make(chan struct{}), answer: func() error { return leaselock.ErrLost }}
	l, err := Take(t.Context(), nil, plan.Scope{Cluster: true}, nil, Options{Lease: own})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context(), onCluster, nil); !errors.Is(err, ErrLost) {
		t.Errorf("its leader is another by now, and a step begins: %v", err)
	}
	if l.Release(t.Context()); own.released {
		t.Error("it was released by another than its holder")
	}
}

// The hooks before a repair run while there is no API for the Lease.
func TestAHookWaitsForNoLease(t *testing.T) {
	t.Parallel()
	hook := plan.Step{ID: "operator-hooks-before-apply", Intent: step.Intent{Kind: step.OperatorHooks}}
	l := locked(t, nil) // held by another run
	if err := l.Check(t.Context(), hook, &cluster.Access{}); err != nil {
		t.Errorf("a hook: %v", err)
	}
	if err := l.Check(t.Context(), onCluster, &cluster.Access{}); err == nil {
		t.Error("a step through the API begins without the Lease")
	}
	l = locked(t, nil)
	l.Scope.Cluster = false
	if err := l.Check(t.Context(), hook, &cluster.Access{}); err != nil {
		t.Errorf("a hook of a run about workers that has the locks of all its hosts: %v", err)
	}
}
