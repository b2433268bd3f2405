package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/leaselock"
	"kubeone/internal/observed"
	"kubeone/internal/probe"
)

// Lease is the lock in the cluster as a run holds it. *leaselock.Lock is one; a caller that elects a leader itself
// brings its own. Its methods may be called concurrently.
type Lease interface {
	// Check asks now whether it is still held: nil if so, an error that wraps leaselock.ErrLost if another has it,
	// and any other error if nobody answers.
	Check(ctx context.Context) error
	// Unrenewed is for how long nothing has said that it is held. Nobody else takes it before apply.LeaseDuration.
	Unrenewed() time.Duration
	// Lost is closed when another has taken it.
	Lost() <-chan struct{}
	// Taker is who has taken a lost one, as far as that is known.
	Taker() leaselock.Holder
	// Release gives it back; it runs out by itself where that fails.
	Release(ctx context.Context) error
}

// takeLease takes the Lease of the cluster, or is given the caller's own. It is taken at once, whoever holds it,
// where every control-plane host of the cluster says that it is locked by this run: each would have refused if the
// holder were at work there, and nobody reaches the API but through one of them.
func (e *Engine) takeLease(ctx context.Context, via cluster.Access, locked func(context.Context) bool,
	o RunOptions) (Lease, error) {
	if o.Lease != nil {
		return lent{o.Lease}, nil
	}
	client, err := cluster.Connect(via)
	if err != nil {
		return nil, err
	}
	held, err := client.Acquire(ctx, leaselock.Holder{Name: e.cfg.Holder, RunID: o.RunID}, leaselock.AcquireOptions{
		Force: o.ForceUnlock, AtOnce: locked,
		Waiting: func(by leaselock.Holder, atMost time.Duration) { e.tellWaiting(o, by, atMost) },
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return ownLease{held, client}, nil
}

// tellWaiting says for what a run waits before it begins.
func (e *Engine) tellWaiting(o RunOptions, by leaselock.Holder, atMost time.Duration) {
	e.emit(o, apply.Event{Format: apply.EventFormat, Time: e.cfg.Now(), RunID: o.RunID, Type: apply.Warning,
		Line: fmt.Sprintf(
			"the cluster's lock is held by %s (run %s), which may be at work through control-plane hosts that do not "+
				"answer here: waiting up to %s for it to be renewed",
			by.Name, by.RunID, atMost)})
}

// lent is a caller's own Lease, which the caller gives back.
type lent struct{ Lease }

// Release leaves it to the caller.
func (lent) Release(context.Context) error { return nil }

// ownLease is the Lease that the engine has taken, with the connection that it is renewed by.
type ownLease struct {
	*leaselock.Lock
	client *cluster.Client
}

// Release gives it back and closes the connection.
func (l ownLease) Release(ctx context.Context) error {
	defer l.client.Close()
	return l.Lock.Release(ctx)
}

// unheard is the Lease of a run that does not have it, because no API has answered.
type unheard struct{ Lease }

// Check says that no API answers.
func (unheard) Check(context.Context) error { return errors.New("the API does not answer") }

// Unrenewed is as long as it takes another run to have it.
func (unheard) Unrenewed() time.Duration { return apply.LeaseDuration }

// leaseVia is how the Lease is reached before the first step; nil where no API answers.
func leaseVia(seen probe.Result) *cluster.Access {
	if seen.World.API.Reached != observed.Yes {
		return nil
	}
	return seen.Access
}
