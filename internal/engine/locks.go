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

// takeLocks takes the locks of the scope, which the caller must release. If the access is nil, it does not take the
// Lease yet.
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

// tellWaiting emits an event that says which other run this one waits for before it starts.
func (e *Engine) tellWaiting(o RunOptions, by leaselock.Holder, atMost time.Duration) {
	e.emitEvent(o, apply.Event{Format: apply.EventFormat, Time: e.cfg.Now(), RunID: o.RunID, Type: apply.Warning,
		Line: fmt.Sprintf(
			"the cluster lock is held by %s (run %s), which may still be working through control-plane hosts that do not "+
				"answer here: waiting up to %s to see whether it renews the lock",
			by.Name, by.RunID, atMost)})
}

// leaseVia returns access to the API for taking the Lease before the first step, or nil if no API answers.
func leaseVia(seen probe.Result) *cluster.Access {
	if seen.World.API.Reached != observed.Yes {
		return nil
	}
	return seen.Access
}

// Exclusively calls do while it holds the lock of the observed cluster. If another run takes the lock, the context of
// do ends and the error is a *locks.TakenError.
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
