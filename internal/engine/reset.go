package engine

import (
	"context"

	"kubeone/internal/decide"
	"kubeone/internal/host"
	"kubeone/internal/plan"
)

// LookReset probes and plans the reset of the hosts named, or of all.
func (e *Engine) LookReset(ctx context.Context, names []string) (Look, error) {
	ids, err := e.ids(names)
	if err != nil {
		return Look{}, err
	}
	result, err := e.probe(ctx)
	if err != nil {
		return Look{}, err
	}
	in := decide.Input{Want: e.want, Is: result.World, Config: e.configDigests(), Addons: e.addonOf}
	p, err := plan.Reset(in, ids)
	if err != nil {
		return Look{}, &ConfigError{err}
	}
	l := Look{Result: result, Plan: p, Decisions: []decide.Decision{decide.Decide(in)}}
	if l.Scripts, err = e.scripts(p, result.World); err != nil {
		return Look{}, err
	}
	plan.Sign(&l.Plan, digests(l.Scripts))
	return l, nil
}

func (e *Engine) ids(names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		h, err := e.named(name, "--host")
		if err != nil {
			return nil, err
		}
		ids = append(ids, h.ID)
	}
	return ids, nil
}

// Reset carries out the plan of an approved LookReset. The hosts it resets are bare afterwards.
func (e *Engine) Reset(ctx context.Context, names []string, approved Look, o ApplyOptions) error {
	now, err := e.carryOut(ctx, approved, o, func(ctx context.Context) (Look, error) { return e.LookReset(ctx, names) })
	if err != nil {
		return err
	}
	return e.forget(ctx, now)
}

// carryOut takes the lock, looks again, and runs the plan if it is still the one that was approved. It returns the last look.
func (e *Engine) carryOut(ctx context.Context, approved Look, o ApplyOptions, look func(context.Context) (Look, error)) (Look, error) {
	locks, err := e.lock(ctx, plan.LockScope(approved.Plan, e.want, approved.Result.World), leaseVia(approved), o)
	if err != nil {
		return approved, err
	}
	defer locks.release(ctx)
	now, err := look(ctx)
	if err != nil {
		return approved, err
	}
	if now.Plan.Digest() != approved.Plan.Digest() {
		return now, ErrWorldChanged
	}
	o.locks = locks
	return now, locks.guard(ctx, func(ctx context.Context) error { return e.run(ctx, now, o) })
}

// forget removes our own working directory from the hosts that were reset. It goes last: until here it held the lock and
// the step's result.
func (e *Engine) forget(ctx context.Context, l Look) error {
	for _, s := range l.Plan.Steps {
		if s.Intent.Kind != plan.ResetHost {
			continue
		}
		_, err := e.hosts[s.Host].Run(ctx, host.Cmd{Name: "remove the working directory", Script: "rm -rf /var/lib/kubeone /run/kubeone"})
		if err != nil {
			return err
		}
	}
	return nil
}
