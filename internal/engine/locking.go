package engine

import (
	"context"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/plan"
)

// Locking says what a caller locks that carries out a plan without an Engine. The simulator is one.
type Locking struct {
	Hosts map[string]host.Host // by ID: those of the scope
	Claim apply.Claim
	Scope plan.Scope
	// Lease takes the Lease. It takes it at once if locked says that every control-plane host is locked by this run.
	Lease func(ctx context.Context, locked func(context.Context) bool) (Lease, error)
	Via   *cluster.Access // how the API is reached; nil: the run takes the Lease later
}

// Locks are what a run has locked. They are those of CarryOut.
type Locks struct{ set *lockSet }

// TakeLocks takes the locks. Callers release them.
func TakeLocks(ctx context.Context, of Locking) (Locks, error) {
	l, err := lockHosts(ctx, of.Hosts, of.Claim, of.Scope)
	if err != nil {
		return Locks{}, err
	}
	l.take = func(ctx context.Context, _ cluster.Access) (Lease, error) { return of.Lease(ctx, l.confirmed) }
	if !of.Scope.Cluster || of.Via == nil {
		return Locks{l}, nil
	}
	if err := l.hold(ctx, of.Via); err != nil {
		l.release(ctx)
		return Locks{}, err
	}
	return Locks{l}, nil
}

// Hosts is the lock on the hosts.
func (l Locks) Hosts() *apply.Lock { return l.set.hosts }

// Check is apply.Run's CheckLock.
func (l Locks) Check(ctx context.Context, s plan.Step, via *cluster.Access) error {
	return l.set.check(ctx, s, via)
}

// Guard does something with a context that ends when another run takes one of the locks.
func (l Locks) Guard(ctx context.Context, do func(context.Context) error) error {
	return l.set.guard(ctx, do)
}

// Release gives the locks back.
func (l Locks) Release(ctx context.Context) { l.set.release(ctx) }
