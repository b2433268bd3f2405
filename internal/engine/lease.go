package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// mine returns an error that wraps apply.ErrLockLost when another run has the lock: in the cluster, or, where there was none when
// this run began, on the hosts.
func (l lease) mine(ctx context.Context, hosts *apply.Lock) error {
	if l.held == nil {
		return hosts.Check(ctx)
	}
	if err := l.held.Check(ctx); err != nil {
		return fmt.Errorf("%w: %w", apply.ErrLockLost, err)
	}
	return nil
}

// guard does something with a context that ends when another run takes the lock, in the cluster or on a host: nothing is begun
// any more and what goes through the API ends at once, because the other run plans without it; what runs on hosts goes on
// there by itself. The error is then a *TakenError.
func (l lease) guard(ctx context.Context, hosts losable, do func(ctx context.Context) error) error {
	if l.held == nil {
		return guard(ctx, do, hosts)
	}
	err := guard(ctx, do, l.held, hosts)
	var taken *TakenError
	if errors.As(err, &taken) {
		select {
		case <-l.held.Lost():
			taken.By = l.held.Taker()
		default: // only hosts have said so
		}
	}
	return err
}

// losable is a lock that may be lost. *cluster.Lock and *apply.Lock are.
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
	By  cluster.Holder
	Err error // what went wrong besides; nil if nothing did
}

// Error says who has the lock, and what to do.
func (e *TakenError) Error() string {
	by := "another run"
	if e.By.Name != "" {
		by = fmt.Sprintf("%s (run %s)", e.By.Name, e.By.RunID)
	}
	text := by + " took the cluster's lock over: what ran on hosts goes on there, nothing else was begun; kubeone history shows what that run does; apply again when it has ended"
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
