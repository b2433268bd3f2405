package engine

import (
	"context"
	"fmt"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// takeLocks takes what the scope says. Callers release it. No API is asked for the Lease if the access is nil.
func (e *Engine) takeLocks(
	ctx context.Context, p Proposal, s plan.Scope, via *cluster.Access, o RunOptions,
) (*locks.Set, error) {
	hosts := map[string]host.Host{}
	for _, id := range s.Hosts {
		hosts[id] = e.HostOf(p, id)
	}
	return locks.Take(ctx, hosts, s, via, locks.Options{
		Holder: e.cfg.Holder, RunID: o.RunID, Force: o.ForceUnlock, Lease: o.Lease,
		Waiting: func(by leaselock.Holder, atMost time.Duration) { e.tellWaiting(o, by, atMost) },
	})
}

// tellWaiting says for what a run waits before it begins.
func (e *Engine) tellWaiting(o RunOptions, by leaselock.Holder, atMost time.Duration) {
	e.emitEvent(o, apply.Event{Format: apply.EventFormat, Time: e.cfg.Now(), RunID: o.RunID, Type: apply.Warning,
		Line: fmt.Sprintf(
			"the cluster's lock is held by %s (run %s), which may be at work through control-plane hosts that do not "+
				"answer here: waiting up to %s for it to be renewed",
			by.Name, by.RunID, atMost)})
}

// leaseVia is how the Lease is reached before the first step; nil where no API answers.
func leaseVia(seen probe.Result) *cluster.Access {
	if seen.World.API.Reached != observed.Yes {
		return nil
	}
	return seen.Access
}

// Exclusively does something by hand as the only operator of the cluster that was observed. Its context ends, and the
// error is a *locks.TakenError, when another run takes the lock.
func (e *Engine) Exclusively(ctx context.Context, seen probe.Result, force bool, do func(context.Context) error,
) error {
	o := RunOptions{RunID: e.NewRunID(), ForceUnlock: force}
	p := e.recognizeHosts(Apply{}, seen)
	held, err := e.takeLocks(ctx, p, plan.ClusterScope(p.Want, p.Observed.World), leaseVia(p.Observed), o)
	if err != nil {
		return err
	}
	defer held.Release(ctx)
	return held.Guard(ctx, do)
}
