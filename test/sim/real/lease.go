package real

import (
	"context"
	"errors"
	"sync"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/engine"
	"kubeone/internal/plan"
	"kubeone/test/sim/world"
)

// lease is the cluster's lock as one run has it, by the rules that the engine keeps.
type lease struct {
	o     *Operator
	run   string
	scope plan.Scope
	lock  *apply.Lock

	mine    bool // it was taken; read and changed with the world locked
	renewed time.Time
	lost    chan struct{}
	once    sync.Once
}

var errHeld = errors.New("another run has the cluster's lock")

// take takes it: at once where all control-plane hosts are locked, otherwise when it is free or was silent for
// long enough.
func (l *lease) take(ctx context.Context) error {
	if !l.scope.Cluster {
		return nil
	}
	var first world.Lease
	for silent := time.Duration(0); ; silent += engine.SettleEvery {
		var err error
		locked := l.confirmed(ctx)
		l.o.W.do(func() {
			w := l.o.W.truth
			if l.mine || !w.APIReached() {
				silent = 0
				return
			}
			now := w.EtcdCluster().Objects.Lease
			if first.Run == "" {
				first = now
			}
			switch {
			case now.Run == "", locked, l.o.Force, now == first && silent >= apply.LeaseDuration:
				w.TakeLease(l.run, l.o.Force)
				l.mine, l.renewed = true, time.Now()
			case now != first:
				err = errHeld
			}
		})
		if err != nil || l.taken() {
			return err
		}
		if err := sleep(ctx, engine.SettleEvery); err != nil {
			return err
		}
	}
}

// taken reports whether the run has the lease, as far as it knows.
func (l *lease) taken() (mine bool) {
	l.o.W.look(func() { mine = l.mine })
	return mine
}

// sinceRenewed is for how long the lease was not renewed.
func (l *lease) sinceRenewed() (d time.Duration) {
	l.o.W.look(func() { d = time.Since(l.renewed) })
	return d
}

// confirmed reports whether every control-plane host says now that its lock is this run's.
func (l *lease) confirmed(ctx context.Context) bool {
	return l.scope.Complete && l.lock.Confirmed(ctx, l.scope.ControlPlane)
}

func (l *lease) release() {
	l.o.W.do(func() {
		if !l.o.W.dead[l.o.Name] {
			l.o.W.truth.ReleaseLease(l.run)
		}
	})
}

// ask renews the lease, or says whose it is.
func (l *lease) ask() (answer apply.Answer) {
	l.o.W.do(func() {
		w := l.o.W.truth
		switch {
		case l.o.W.dead[l.o.Name] || !w.APIReached():
			answer = apply.Silent
		case w.EtcdCluster().Objects.Lease.Run != l.run:
			answer = apply.Taken
		default:
			w.EtcdCluster().Objects.Lease.Renewed = w.Now
			answer, l.renewed = apply.Ours, time.Now()
		}
	})
	return answer
}

// guarded ends what it does when another run takes the lease or the lock of a host.
func (l *lease) guarded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for sleep(ctx, engine.SettleEvery) == nil {
			if l.taken() && l.ask() == apply.Taken {
				l.once.Do(func() { close(l.lost) })
			}
		}
	}()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-l.lock.Lost():
		case <-l.lost:
		case <-over:
			return
		}
		cancel(apply.ErrLockLost)
	}()
	return do(ctx)
}

// check says whether the next step may begin.
func (l *lease) check(ctx context.Context, s plan.Step, via *cluster.Access) error {
	onHost := s.Intent.Kind.OnHost()
	if !onHost && via != nil {
		if err := l.take(ctx); err != nil {
			return errors.Join(apply.ErrLockLost, err)
		}
	}
	if !l.taken() {
		if onHost {
			return nil
		}
		return l.lock.Check(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, apply.LeaseTimeout)
	defer cancel()
	for {
		standing := apply.Standing{Lease: l.ask(), Renewed: l.sinceRenewed()}
		if standing.Lease == apply.Silent {
			standing.Locked = l.confirmed(ctx)
		}
		switch standing.Verdict() {
		case apply.MayBegin:
			return ctx.Err()
		case apply.MustEnd:
			return apply.ErrLockLost
		}
		if err := sleep(ctx, engine.SettleEvery); err != nil {
			return err
		}
	}
}
