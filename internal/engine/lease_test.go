package engine

import (
	"errors"
	"strings"
	"testing"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
)

// lockFake is a lock that a test loses.
type lockFake chan struct{}

func (l lockFake) Lost() <-chan struct{} { return l }

func (lockFake) Taker() cluster.Holder { return cluster.Holder{Name: "bob@desk", RunID: "run-2"} }

func TestALostLockEndsTheRunAndSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	lock, failed := make(lockFake), errors.New("cp-1: join: no")
	err := guard(lock, nil, func(stop <-chan struct{}) error {
		close(lock)
		<-stop
		return errors.Join(failed, apply.ErrStopped)
	})
	var taken *TakenError
	if !errors.As(err, &taken) || !errors.Is(err, apply.ErrLockLost) || !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	if errors.Is(err, apply.ErrStopped) {
		t.Error("it looks as if the operator had asked to stop")
	}
	for _, want := range []string{"bob@desk (run run-2)", "nothing else was begun", "apply again when", "cp-1: join: no"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestTheOperatorStillStopsARunWithALock(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	close(stop)
	err := guard(make(lockFake), stop, func(stop <-chan struct{}) error {
		<-stop
		return errors.Join(apply.ErrStopped)
	})
	if taken := (*TakenError)(nil); !errors.Is(err, apply.ErrStopped) || errors.As(err, &taken) {
		t.Errorf("got %v", err)
	}
}

func TestALockThatIsLostWhenAllIsDoneIsNoFailure(t *testing.T) {
	t.Parallel()
	lock := make(lockFake)
	if err := guard(lock, nil, func(<-chan struct{}) error { close(lock); return nil }); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWithoutALockTheRunIsTheSame(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	err := lease{}.guard(stop, func(got <-chan struct{}) error {
		if got != stop {
			t.Error("another channel")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	lease{}.release(t.Context())
}
