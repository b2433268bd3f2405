package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/leaselock"
)

// losable is a lock that may be lost.
type losable interface {
	Lost() <-chan struct{}
}

func guard(ctx context.Context, do func(ctx context.Context) error, locks ...losable) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var watching sync.WaitGroup
	for _, lock := range locks {
		watching.Go(func() {
			select {
			case <-lock.Lost():
				cancel(apply.ErrLockLost)
			case <-over:
			}
		})
	}
	err := do(ctx)
	close(over)
	watching.Wait()
	if err != nil && errors.Is(context.Cause(ctx), apply.ErrLockLost) {
		return &TakenError{Err: without(err, context.Canceled)}
	}
	return err
}

// TakenError says that another run took the cluster's lock, so that this one ended early.
type TakenError struct {
	By  leaselock.Holder
	Err error // what went wrong besides; nil if nothing did
}

// Error says who has the lock, and what to do.
func (e *TakenError) Error() string {
	by := "another run"
	if e.By.Name != "" {
		by = fmt.Sprintf("%s (run %s)", e.By.Name, e.By.RunID)
	}
	text := by + " took the cluster's lock over: what ran on hosts goes on there, nothing else was begun; kubeone " +
		"history shows what that run does; apply again when it has ended"
	if e.Err != nil {
		text += "\n" + e.Err.Error()
	}
	return text
}

// Unwrap gives what else went wrong, and that the lock was lost.
func (e *TakenError) Unwrap() []error { return []error{apply.ErrLockLost, e.Err} }

// without is a joined error without one of its parts; nil if nothing is left.
func without(err, part error) error {
	joined, ok := err.(interface{ Unwrap() []error }) // only the outermost is taken apart
	if !ok {
		return nil
	}
	var left []error
	for _, one := range joined.Unwrap() {
		if !errors.Is(one, part) {
			left = append(left, one)
		}
	}
	return errors.Join(left...)
}
