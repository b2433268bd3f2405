package engine

import (
	"context"

	"kubeone/internal/decide"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/script"
)

// RecoverOptions say from what the cluster is recovered, and what the operator has confirmed.
type RecoverOptions struct {
	Source    *Source
	Destroyed []string // hosts of the manifest, or etcd members without one, that are gone for good
	On        string   // host to restore on; "" chooses
}

// LookRecover probes and plans the recovery of a cluster that has lost its quorum. A recovery that must not be done is a
// *ConfigError that says why, and nothing was changed.
func (e *Engine) LookRecover(ctx context.Context, o RecoverOptions) (Look, error) {
	options, err := e.recoverOptions(o)
	if err != nil {
		return Look{}, err
	}
	result, err := e.probe(ctx)
	if err != nil {
		return Look{}, err
	}
	if err := e.artifacts(ctx, architectures(result.World)); err != nil {
		return Look{}, err
	}
	options.Progress = e.progress(ctx, o.Source, result.World)
	in := decide.Input{Want: e.want, Is: result.World, Config: e.configDigests(), Addons: e.addonOf}
	p, err := plan.Recover(in, options)
	if err != nil {
		return Look{}, &ConfigError{err}
	}
	p.FirstContacts = firstContacts(result.World)
	l := Look{Result: result, Plan: p, Decisions: []decide.Decision{decide.Decide(in)}}
	if l.Scripts, err = e.scripts(l.Plan, result.World); err != nil {
		return Look{}, err
	}
	plan.Sign(&l.Plan, digests(l.Scripts))
	return l, nil
}

// recoverOptions turns names into IDs. A name that is no host may be that of an etcd member.
func (e *Engine) recoverOptions(o RecoverOptions) (plan.RecoverOptions, error) {
	out := plan.RecoverOptions{Copy: o.Source.about}
	for _, name := range o.Destroyed {
		if h, ok := e.want.Host(name); ok {
			name = h.ID
		}
		out.Destroyed = append(out.Destroyed, name)
	}
	if o.On == "" {
		return out, nil
	}
	h, err := e.named(o.On, "--on")
	out.On = h.ID
	return out, err
}

// architectures are those of the hosts that answered.
func architectures(w observed.World) []string {
	seen := map[string]bool{}
	var out []string
	for _, h := range w.Hosts {
		if h.Reach == observed.Reached && h.Arch != "" && !seen[h.Arch] {
			seen[h.Arch] = true
			out = append(out, h.Arch)
		}
	}
	return out
}

// Recover carries out the plan of an approved LookRecover, as Apply does. The returned look is an ordinary one: its plan says
// what is still to be done.
func (e *Engine) Recover(ctx context.Context, o RecoverOptions, approved Look, a ApplyOptions) (Look, error) {
	if e.bundle != nil {
		if err := e.bundle.Verify(ctx); err != nil {
			return approved, &ConfigError{err}
		}
	}
	locks, err := e.lock(ctx, plan.LockScope(approved.Plan, e.want, approved.Result.World), nil, a) // nil: there is no API to keep a Lease in
	if err != nil {
		return approved, err
	}
	defer locks.release(ctx)
	now, err := e.LookRecover(ctx, o)
	if err != nil {
		return approved, err
	}
	if now.Plan.Digest() != approved.Plan.Digest() {
		return now, ErrWorldChanged
	}
	now.Result.World.API.Reached = observed.No // what still answers there is not the cluster that will be
	a.locks = locks
	err = locks.guard(ctx, func(ctx context.Context) error { return e.runFrom(ctx, now, a, &o.Source.content) })
	if err != nil {
		return now, err
	}
	return e.lookUntil(ctx, func(l Look) bool {
		left := len(l.Plan.Operator) > 0 && len(l.ComingUp()) == 0 // something remains, and waiting does not change it
		return left || matches(l)
	})
}

// recoverInput is what a host's script must know of a restore.
func recoverInput(i plan.Intent, have script.Recover) script.Recover {
	if i.Recovery == nil {
		return have
	}
	return script.Recover{From: string(i.Recovery.From), Snapshot: i.Recovery.Snapshot, EncryptionPath: i.Recovery.EncryptionPath}
}
