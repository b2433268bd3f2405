package locks

import (
	"context"
	"errors"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/locks/leaselock"
)

// Lease is the lock in the cluster as a run holds it. *leaselock.Lock is one; a caller that elects a leader itself
// brings its own. Its methods may be called concurrently.
type Lease interface {
	// Check asks now whether it is still held: nil if so, an error that wraps leaselock.ErrLost if another has it,
	// and any other error if nobody answers.
	Check(ctx context.Context) error
	// Unrenewed is for how long nothing has said that it is held. Nobody else takes it before leaselock.Duration.
	Unrenewed() time.Duration
	// Lost is closed when another has taken it.
	Lost() <-chan struct{}
	// Taker is who has taken a lost one, as far as that is known.
	Taker() leaselock.Holder
	// Release gives it back; it runs out by itself where that fails.
	Release(ctx context.Context) error
}

// takeLease takes the Lease of the cluster, or the caller's own. It takes it at once, no matter who holds it, if every
// control-plane host of the cluster confirms that this run has its lock: each would have refused if the holder were at
// work there, and the API is reached through one of them only.
func (s *Set) takeLease(ctx context.Context, via cluster.Access, o Options) (Lease, error) {
	if o.Lease != nil {
		return lentLease{o.Lease}, nil
	}
	acquire := leaselock.AcquireOptions{Force: o.Force, AtOnce: s.controlPlaneConfirms, Waiting: o.Waiting}
	if o.TakeLease != nil {
		return o.TakeLease(ctx, via, acquire)
	}
	client, err := cluster.Connect(via)
	if err != nil {
		return nil, err
	}
	held, err := client.Acquire(ctx, leaselock.Holder{Name: o.Holder, RunID: o.RunID}, acquire)
	if err != nil {
		client.Close()
		return nil, err
	}
	return ownLease{held, client}, nil
}

// lentLease is a caller's own Lease, which the caller gives back.
type lentLease struct{ Lease }

// Release leaves it to the caller.
func (lentLease) Release(context.Context) error { return nil }

// ownLease is the Lease that the run has taken, with the connection that it is renewed by.
type ownLease struct {
	*leaselock.Lock
	client *cluster.Client
}

// Release gives it back and closes the connection.
func (l ownLease) Release(ctx context.Context) error {
	defer l.client.Close()
	return l.Lock.Release(ctx)
}

// noLease is the Lease of a run that does not have it, because no API has answered.
type noLease struct{ Lease }

// Check says that no API answers.
func (noLease) Check(context.Context) error { return errors.New("the API does not answer") }

// Unrenewed is as long as it takes another run to have it.
func (noLease) Unrenewed() time.Duration { return leaselock.Duration }
