package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/leaselock"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/retry"
	"kubeone/internal/step"
)

// lockSet is what a run has locked: hosts and, if its plan is about the cluster, the Lease. Where no API answers
// when it begins, it takes the Lease before its first step through the API.
type lockSet struct {
	hosts *apply.Lock
	scope plan.Scope
	take  func(context.Context, cluster.Access) (Lease, error)

	taking   chan struct{} // has room for the one who takes the Lease; others wait no longer than their context
	mu       sync.Mutex
	lease    Lease
	lost     chan struct{} // closed when any of them is lost
	once     sync.Once     // closes it
	over     chan struct{} // closed on release
	watching sync.WaitGroup
}

// lock takes what the scope says. Callers release it. No API is asked for the Lease if the access is nil.
func (e *Engine) lock(
	ctx context.Context, p Proposal, s plan.Scope, via *cluster.Access, o RunOptions,
) (*lockSet, error) {
	hosts := map[string]host.Host{}
	for _, id := range s.Hosts {
		hosts[id] = e.HostOf(p, id)
	}
	claim := apply.Claim{Holder: e.cfg.Holder, Run: o.RunID, Force: o.ForceUnlock, Dispensable: s.Dispensable()}
	l, err := lockHosts(ctx, hosts, claim, s)
	if err != nil {
		return nil, err
	}
	l.take = func(ctx context.Context, via cluster.Access) (Lease, error) {
		return e.takeLease(ctx, via, l.confirmed, o)
	}
	if !s.Cluster || via == nil && o.Lease == nil {
		return l, nil
	}
	if err := l.hold(ctx, via); err != nil {
		l.release(ctx)
		return nil, err
	}
	return l, nil
}

// lockHosts takes the locks of the hosts, and watches them.
func lockHosts(ctx context.Context, hosts map[string]host.Host, c apply.Claim, s plan.Scope) (*lockSet, error) {
	l := &lockSet{scope: s, taking: make(chan struct{}, 1), lost: make(chan struct{}), over: make(chan struct{})}
	var err error
	if l.hosts, err = apply.TakeLock(ctx, hosts, c); err != nil {
		return nil, err
	}
	l.watch(l.hosts.Lost())
	return l, nil
}

// hold takes the Lease unless it is held already.
func (l *lockSet) hold(ctx context.Context, via *cluster.Access) error {
	select {
	case l.taking <- struct{}{}:
		defer func() { <-l.taking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.current() != nil {
		return nil
	}
	var access cluster.Access
	if via != nil {
		access = *via
	}
	lease, err := l.take(ctx, access)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	l.watch(lease.Lost())
	return nil
}

// watch closes lost when one of the locks is lost.
func (l *lockSet) watch(lost <-chan struct{}) {
	l.watching.Go(func() {
		select {
		case <-lost:
			l.once.Do(func() { close(l.lost) })
		case <-l.over:
		}
	})
}

// confirmed reports whether every control-plane host of the cluster says now that its lock is this run's.
func (l *lockSet) confirmed(ctx context.Context) bool {
	return l.scope.Complete && l.hosts.Confirmed(ctx, l.scope.ControlPlane)
}

// Lost is closed when another run has taken the Lease or the lock of a host.
func (l *lockSet) Lost() <-chan struct{} { return l.lost }

// release gives all of it back, the Lease first: whoever finds the hosts free finds it free too.
func (l *lockSet) release(ctx context.Context) {
	close(l.over)
	l.watching.Wait()
	if lease := l.current(); lease != nil {
		_ = lease.Release(context.WithoutCancel(ctx)) // it runs out by itself
	}
	l.hosts.Release()
}

func (l *lockSet) current() Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// check returns an error that wraps apply.ErrLockLost when another run has the lock of what the step is about. A
// host refuses the steps of a run that has lost its lock there, so of workers alone only the steps through the API
// are asked about; what is about the cluster needs the Lease besides, as another run may have that which reaches
// other hosts, or, where there is no API, every control-plane host's word that this run has its lock.
func (l *lockSet) check(ctx context.Context, s plan.Step, via *cluster.Access) error {
	// A hook of the operator's machine needs no API, which may be what is to be repaired; and no host refuses it.
	hook := s.Intent.Kind.Place() == step.OnOperator
	onHost := s.Intent.Kind.OnHost() || hook && l.scope.Cluster
	if !s.Intent.Kind.OnHost() {
		if err := l.hosts.CheckDispensable(ctx, s.Host); err != nil {
			return err
		}
	}
	if l.scope.Cluster && !onHost && via != nil {
		if err := l.hold(ctx, via); err != nil {
			return l.notTaken(err)
		}
	}
	if onHost && l.scope.Ends {
		return nil // soon nobody can be asked any more
	}
	if lease := l.current(); lease != nil {
		return l.await(ctx, lease)
	}
	switch {
	case l.scope.Cluster && !onHost:
		return l.await(ctx, unheard{})
	case onHost:
		return nil
	}
	return l.hosts.Check(ctx)
}

// notTaken is why the Lease was not taken in the middle of a run: another one is at work.
func (l *lockSet) notTaken(err error) error {
	var held *leaselock.HeldError
	if !errors.As(err, &held) {
		return err
	}
	l.once.Do(func() { close(l.lost) })
	return fmt.Errorf("%w: %w", apply.ErrLockLost, err)
}

// await waits until somebody says whether the next step may begin.
func (l *lockSet) await(ctx context.Context, lease Lease) error {
	ctx, cancel := context.WithTimeout(ctx, apply.LeaseTimeout)
	defer cancel()
	for {
		err := lease.Check(ctx)
		standing := apply.Standing{Renewed: lease.Unrenewed()}
		switch {
		case err == nil:
			standing.Lease = apply.Ours
		case errors.Is(err, leaselock.ErrLost):
			standing.Lease = apply.Taken
		default:
			standing.Locked = l.confirmed(ctx)
		}
		switch standing.Verdict() {
		case apply.MayBegin:
			return ctx.Err()
		case apply.MustEnd:
			return fmt.Errorf("%w: %w", apply.ErrLockLost, err)
		}
		if !retry.Pause(ctx, SettleEvery) {
			return fmt.Errorf("nobody says whether the cluster's lock is still this run's: %w; apply again", err)
		}
	}
}

// guard does something with a context that ends when another run takes the lock, in the cluster or on a host:
// nothing is begun any more and what goes through the API ends at once, because the other run plans without it;
// what runs on hosts goes on there by itself. The error is then a *TakenError.
func (l *lockSet) guard(ctx context.Context, do func(ctx context.Context) error) error {
	err := guard(ctx, do, l)
	var taken *TakenError
	if lease := l.current(); lease != nil && errors.As(err, &taken) {
		select {
		case <-lease.Lost():
			taken.By = lease.Taker()
		default: // only hosts have said so
		}
	}
	return err
}

// Exclusively does something by hand as the only operator of the cluster that was observed. Its context ends, and the
// error is a *TakenError, when another run takes the lock.
func (e *Engine) Exclusively(ctx context.Context, seen probe.Result, force bool, do func(context.Context) error,
) error {
	o := RunOptions{RunID: e.NewRunID(), ForceUnlock: force}
	p := e.recognised(Apply{}, seen)
	locks, err := e.lock(ctx, p, plan.ClusterScope(p.Want, p.Observed.World), leaseVia(p.Observed), o)
	if err != nil {
		return err
	}
	defer locks.release(ctx)
	return locks.guard(ctx, do)
}
