package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
)

// lockFake is a lock that a test loses.
type lockFake chan struct{}

func (l lockFake) Lost() <-chan struct{} { return l }

func TestALostLockEndsTheRunAndSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	lock, failed := make(lockFake), errors.New("cp-1: join: no")
	err := guard(t.Context(), func(ctx context.Context) error {
		close(lock)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), apply.ErrLockLost) {
			t.Errorf("it ends because of %v", context.Cause(ctx))
		}
		return errors.Join(failed, ctx.Err())
	}, make(lockFake), lock)
	var taken *TakenError
	if !errors.As(err, &taken) || !errors.Is(err, apply.ErrLockLost) || !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	if errors.Is(err, context.Canceled) {
		t.Error("it looks as if the operator had aborted it")
	}
	for _, want := range []string{"another run took", "nothing else was begun", "apply again when", "cp-1: join: no"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestTheOperatorStillAbortsARunWithALock(t *testing.T) {
	t.Parallel()
	ctx, abort := context.WithCancel(t.Context())
	err := guard(ctx, func(ctx context.Context) error {
		abort()
		<-ctx.Done()
		return errors.Join(ctx.Err())
	}, make(lockFake))
	if taken := (*TakenError)(nil); !errors.Is(err, context.Canceled) || errors.As(err, &taken) {
		t.Errorf("got %v", err)
	}
}

func TestALockThatIsLostWhenAllIsDoneIsNoFailure(t *testing.T) {
	t.Parallel()
	lock := make(lockFake)
	if err := guard(t.Context(), func(context.Context) error { close(lock); return nil }, lock); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestTheLocksOfTheHostsAreGuardedWithoutACluster(t *testing.T) {
	t.Parallel()
	lock := make(lockFake)
	err := lease{}.guard(t.Context(), lock, func(ctx context.Context) error {
		close(lock)
		<-ctx.Done()
		return errors.Join(ctx.Err())
	})
	if !errors.Is(err, apply.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	lease{}.release(t.Context())
}

func TestWhoTookTheLockIsNamed(t *testing.T) {
	t.Parallel()
	err := &TakenError{By: cluster.Holder{Name: "bob@desk", RunID: "run-2"}}
	if !strings.Contains(err.Error(), "bob@desk (run run-2)") {
		t.Errorf("%v", err)
	}
}
