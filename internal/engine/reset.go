package engine

import (
	"context"
	"slices"

	"kubeone/internal/apply"
	"kubeone/internal/decide"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/script"
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
	l := Look{Result: result, Plan: p, Scripts: map[string]string{}, Decisions: []decide.Decision{decide.Decide(in)}}
	for _, h := range e.want.Hosts() {
		if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Host == h.ID && s.Intent.Kind == plan.ResetHost }) {
			continue
		}
		l.Scripts[h.ID], err = script.Render(script.Input{Want: e.want, Host: h, NodeName: p.Hosts[h.ID], Arch: result.World.Hosts[h.ID].Arch})
		if err != nil {
			return Look{}, err
		}
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
	lock, err := apply.TakeLock(ctx, e.lockable(approved), Holder(), o.RunID, o.ForceUnlock)
	if err != nil {
		return err
	}
	now, err := e.LookReset(ctx, names)
	if err == nil && now.Plan.Digest() != approved.Plan.Digest() {
		err = ErrWorldChanged
	}
	if err == nil {
		err = e.run(ctx, now, lock, o)
	}
	lock.Release()
	if err != nil {
		return err
	}
	for id := range now.Scripts {
		// Our own working directory goes last: until here it held the lock and the step's result.
		_, err := e.hosts[id].Run(ctx, host.Cmd{Name: "remove the working directory", Script: "rm -rf /var/lib/kubeone /run/kubeone"})
		if err != nil {
			return err
		}
	}
	return nil
}
