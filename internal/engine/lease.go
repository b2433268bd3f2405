package engine

import (
	"context"
	"errors"
	"fmt"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/observed"
)

// lease is the lock in the cluster. It holds none where there is no cluster that answers; the hosts' locks are held then too.
type lease struct {
	client *cluster.Client
	held   *cluster.Lock
}

// lease takes the lock in the cluster, if there is a cluster that answers. Callers release it.
func (e *Engine) lease(ctx context.Context, l Look, o ApplyOptions) (lease, error) {
	if l.Result.Access == nil || l.Result.World.API.Reached != observed.Yes {
		return lease{}, nil
	}
	client, err := cluster.Connect(*l.Result.Access)
	if err != nil {
		return lease{}, err
	}
	// Whoever has the hosts' locks has shown that no other run is alive there.
	held, err := client.Acquire(ctx, cluster.Holder{Name: Holder(), RunID: o.RunID}, true)
	if err != nil {
		client.Close()
		return lease{}, err
	}
	return lease{client, held}, nil
}

func (l lease) release(ctx context.Context) {
	if l.held != nil {
		_ = l.held.Release(context.WithoutCancel(ctx)) // it runs out by itself
		l.client.Close()
	}
}

// guard does something that ends early when its channel is closed: when stop is, or when another run takes the lock. The
// latter is a *TakenError.
func (l lease) guard(stop <-chan struct{}, do func(stop <-chan struct{}) error) error {
	if l.held == nil {
		return do(stop)
	}
	return guard(l.held, stop, do)
}

// losable is a lock that may be lost. *cluster.Lock is one.
type losable interface {
	Lost() <-chan struct{}
	Taker() cluster.Holder
}

func guard(lock losable, stop <-chan struct{}, do func(stop <-chan struct{}) error) error {
	over, either := make(chan struct{}), make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-stop:
		case <-lock.Lost():
		case <-over:
			return
		}
		close(either)
	}()
	err := do(either)
	select {
	case <-lock.Lost():
		if errors.Is(err, apply.ErrStopped) {
			return &TakenError{By: lock.Taker(), Err: without(err, apply.ErrStopped)}
		}
	default:
	}
	return err
}

// TakenError says that another run took the cluster's lock, so that this one ended early.
type TakenError struct {
	By  cluster.Holder
	Err error // what went wrong besides; nil if nothing did
}

// Error says who has the lock, and what to do.
func (e *TakenError) Error() string {
	by := "another run"
	if e.By.Name != "" {
		by = fmt.Sprintf("%s (run %s)", e.By.Name, e.By.RunID)
	}
	text := by + " took the cluster's lock over: the running steps were finished, nothing else was begun; kubeone history shows what that run does; apply again when it has ended"
	if e.Err != nil {
		text += "\n" + e.Err.Error()
	}
	return text
}

// Unwrap gives what else went wrong, and that the lock was lost.
func (e *TakenError) Unwrap() []error { return []error{apply.ErrLockLost, e.Err} }

// without is a joined error without one of its parts; nil if nothing is left.
func without(err, part error) error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // only the outermost is taken apart
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
