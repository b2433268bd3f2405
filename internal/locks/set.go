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

// Set holds the locks of a run: those of hosts and, if the plan is for the cluster, the Lease. Its exported fields do
// not change.
type Set struct {
	Hosts *HostLocks
	Scope plan.Scope

	take func(context.Context, cluster.Access) (Lease, error) // takes the Lease

	held context.Context         // ends when a lock is lost, with cause ErrLost, and on release
	end  context.CancelCauseFunc // ends it

	taking   chan struct{} // has room for the caller that takes the Lease; others wait as long as their context
	mu       sync.Mutex
	lease    Lease // nil until it is taken
	watching sync.WaitGroup
}

// Options say who takes the locks and how.
type Options struct {
	Holder string // user@machine
	RunID  string
	Force  bool // take locks from a run that is still working
	// Lease is for callers that run a leader election, which hold and release this Lease themselves. If it is nil, a
	// run for the cluster takes the cluster Lease.
	Lease Lease
	// TakeLease takes the cluster Lease; nil takes it through the API. The simulator sets it, because it has its own
	// API.
	TakeLease func(ctx context.Context, via cluster.Access, o leaselock.AcquireOptions) (Lease, error)
	// Waiting is called before the run waits, for at most atMost, to take the Lease from another run, by. Nil disables
	// the callback.
	Waiting func(by leaselock.Holder, atMost time.Duration)
}

// Take takes the locks of the scope on the given hosts, by ID. The caller must call Release. If via is nil, the Lease
// is taken later, before the first step through the API. If another run holds a lock, the error wraps a *HeldError for
// a host, or a *leaselock.HeldError for the Lease.
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

// watchLock ends the context held when a lock is lost.
func (s *Set) watchLock(lost <-chan struct{}) {
	s.watching.Go(func() {
		select {
		case <-lost:
			s.end(ErrLost)
		case <-s.held.Done():
		}
	})
}

// holdLease takes the Lease if it is not held yet.
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

// Release releases all locks. It releases the Lease first, so that a run that can lock the hosts can take the Lease
// too.
func (s *Set) Release(ctx context.Context) {
	s.end(nil)
	s.watching.Wait()
	if lease := s.heldLease(); lease != nil {
		_ = lease.Release(context.WithoutCancel(ctx)) // otherwise it expires
	}
	s.Hosts.Release()
}

// Guard calls do with a context that ends when another run takes the Lease or the lock of a host that is not
// dispensable. Then no step starts, and requests to the API end at once, because the other run does not expect them.
// Steps on hosts continue. The error is then a *TakenError.
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
	end() // a lock lost just now may be the reason for the failure
	if err == nil || !errors.Is(context.Cause(ctx), ErrLost) {
		return err
	}
	taken := &TakenError{Err: removeError(err, context.Canceled)}
	if lease := s.heldLease(); lease != nil {
		select {
		case <-lease.Lost():
			taken.By = lease.Taker()
		default: // only hosts reported the loss
		}
	}
	return taken
}
