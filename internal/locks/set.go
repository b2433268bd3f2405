package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/plan"
)

// Set is what a run has locked: hosts and, if its plan is about the cluster, the Lease. Its exported fields are not
// changed.
type Set struct {
	Hosts *HostLocks
	Scope plan.Scope

	take func(context.Context, cluster.Access) (Lease, error) // takes the Lease

	held context.Context         // ends when any of the locks is lost, because of ErrLost, and on release
	end  context.CancelCauseFunc // ends it

	taking   chan struct{} // has room for the caller that takes the Lease; others wait no longer than their context
	mu       sync.Mutex
	lease    Lease // nil until it is taken
	watching sync.WaitGroup
}

// Options say for whom and how locks are taken.
type Options struct {
	Holder string // user@machine
	RunID  string
	Force  bool // take locks over from a living run
	// Lease is the caller's own, held, and released by the caller, who elects a leader itself; nil: a run about the
	// cluster takes the cluster's.
	Lease Lease
	// TakeLease takes the cluster's Lease; nil takes it through the API. The simulator has an API of its own.
	TakeLease func(ctx context.Context, via cluster.Access, o leaselock.AcquireOptions) (Lease, error)
	// Waiting is told for whom the run waits, and for how long at most, before it takes the Lease from another one.
	// Nil disables the callback.
	Waiting func(by leaselock.Holder, atMost time.Duration)
}

// Take takes what the scope says, of the hosts given by ID. Callers Release it. Without access to an API the Lease is
// taken later, before the first step through the API. A lock that another run has is an error that wraps a *HeldError
// if it is a host's, and a *leaselock.HeldError if it is the Lease.
func Take(
	ctx context.Context, hosts map[string]host.Host, scope plan.Scope, via *cluster.Access, o Options,
) (*Set, error) {
	held, err := TakeHosts(ctx, hosts,
		Claim{Holder: o.Holder, RunID: o.RunID, Force: o.Force, Dispensable: scope.Dispensable()})
	if err != nil {
		return nil, err
	}
	s := newSet(ctx, held, scope)
	s.take = func(ctx context.Context, via cluster.Access) (Lease, error) { return s.takeLease(ctx, via, o) }
	if !scope.Cluster || via == nil && o.Lease == nil {
		return s, nil
	}
	if err := s.holdLease(ctx, via); err != nil {
		s.Release(ctx)
		return nil, err
	}
	return s, nil
}

func newSet(ctx context.Context, hosts *HostLocks, scope plan.Scope) *Set {
	s := &Set{Hosts: hosts, Scope: scope, taking: make(chan struct{}, 1)}
	s.held, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.watchLock(hosts.Lost())
	return s
}

// watchLock ends held when a lock is lost.
func (s *Set) watchLock(lost <-chan struct{}) {
	s.watching.Go(func() {
		select {
		case <-lost:
			s.end(ErrLost)
		case <-s.held.Done():
		}
	})
}

// holdLease takes the Lease unless it is held already.
func (s *Set) holdLease(ctx context.Context, via *cluster.Access) error {
	select {
	case s.taking <- struct{}{}:
		defer func() { <-s.taking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.heldLease() != nil {
		return nil
	}
	var access cluster.Access
	if via != nil {
		access = *via
	}
	lease, err := s.take(ctx, access)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.lease = lease
	s.mu.Unlock()
	s.watchLock(lease.Lost())
	return nil
}

// heldLease returns the Lease, or nil before it is taken.
func (s *Set) heldLease() Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

// Release gives all of it back, the Lease first: a run that finds the hosts free finds the Lease free too.
func (s *Set) Release(ctx context.Context) {
	s.end(nil)
	s.watching.Wait()
	if lease := s.heldLease(); lease != nil {
		_ = lease.Release(context.WithoutCancel(ctx)) // it runs out by itself
	}
	s.Hosts.Release()
}

// Guard does something with a context that ends when another run takes the lock, in the cluster or on a host:
// nothing is begun any more and what goes through the API ends at once, because the other run plans without it;
// what runs on hosts continues there by itself. The error is then a *TakenError.
func (s *Set) Guard(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := func() {
		if errors.Is(context.Cause(s.held), ErrLost) {
			cancel(ErrLost)
		}
	}
	stop := context.AfterFunc(s.held, end) //nolint:contextcheck // it ends with the locks
	defer stop()
	err := do(ctx)
	end() // a lock that was lost just now may be why it failed
	if err == nil || !errors.Is(context.Cause(ctx), ErrLost) {
		return err
	}
	taken := &TakenError{Err: withoutError(err, context.Canceled)}
	if lease := s.heldLease(); lease != nil {
		select {
		case <-lease.Lost():
			taken.By = lease.Taker()
		default: // only hosts have said so
		}
	}
	return taken
}
