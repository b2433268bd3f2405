package locks

import (
	"context"
	"errors"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/locks/leaselock"
)

// Lease is the cluster's lock as a run holds it. *leaselock.Lock implements it; a caller that elects a leader itself
// brings its own. The methods are safe for concurrent use.
type Lease interface {
	// Check checks whether the Lease is still held. The error wraps leaselock.ErrLost if another run has it; any
	// other error means that there was no answer.
	Check(ctx context.Context) error
	// Unrenewed returns the time since the last proof that it is held. No other run takes it before
	// leaselock.Duration.
	Unrenewed() time.Duration
	// Lost is closed when another run has taken it.
	Lost() <-chan struct{}
	// Taker returns the holder of a lost Lease, if known.
	Taker() leaselock.Holder
	// Release releases the Lease; if that fails, it expires.
	Release(ctx context.Context) error
}

// takeLease takes the Lease of the cluster or uses the caller's own. If every control-plane host of the cluster
// confirms this run's lock, it takes the Lease at once from any holder. A holder at work there would have been
// refused by a host, and the API is reachable only through one of them.
func (s *Set) takeLease(ctx context.Context, via cluster.Access, o Options) (Lease, error) {
	if o.Lease != nil {
		return callerLease{o.Lease}, nil
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

// callerLease is a caller's own Lease, which the caller releases.
type callerLease struct{ Lease }

// Release leaves the Lease to the caller.
func (callerLease) Release(context.Context) error { return nil }

// ownLease is the Lease that the run has taken, with the connection for its renewal.
type ownLease struct {
	*leaselock.Lock
	client *cluster.Client
}

// Release releases the Lease and closes the connection.
func (l ownLease) Release(ctx context.Context) error {
	defer l.client.Close()
	return l.Lock.Release(ctx)
}

// noLease is the Lease of a run that started without an API.
type noLease struct{ Lease }

// Check returns an error: no API answers.
func (noLease) Check(context.Context) error { return errors.New("the API does not answer") }

// Unrenewed returns the time after which another run can have the Lease.
func (noLease) Unrenewed() time.Duration { return leaselock.Duration }
