package locks

import (
	"context"
	"errors"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/locks/leaselock"
)

// Lease is the cluster lock, held by a run. *leaselock.Lock implements it; callers that run a leader election pass
// their own. The methods are safe for concurrent use.
type Lease interface {
	// Check returns nil if this run still holds the Lease. The error wraps leaselock.ErrLost if another run holds it.
	// Any other error means that the API did not answer.
	Check(ctx context.Context) error
	// Unrenewed returns the time since it was last known that this run holds the Lease. No other run takes it before
	// that time reaches leaselock.Duration.
	Unrenewed() time.Duration
	// Lost returns a channel that is closed when another run has taken the Lease.
	Lost() <-chan struct{}
	// Taker returns the holder of a lost Lease, if known.
	Taker() leaselock.Holder
	// Release releases the Lease. If that fails, the Lease expires.
	Release(ctx context.Context) error
}

// takeLease takes the cluster Lease, or returns the Lease that the caller passed. If every control-plane host confirms
// that this run holds its lock, it takes the Lease from any holder at once. That holder cannot be working, because the
// hosts refuse its steps and the API can be reached only through one of them.
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

// callerLease is a Lease that the caller holds and releases.
type callerLease struct{ Lease }

// Release does nothing, because the caller releases the Lease.
func (callerLease) Release(context.Context) error { return nil }

// ownLease is the Lease that the run has taken, with the connection on which it is renewed.
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
