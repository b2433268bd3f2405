package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"kubeone/internal/apply"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// ErrWorldChanged means that between the plan's approval and its start the world became another.
var ErrWorldChanged = errors.New("the plan that was approved is not the plan that would run now: something changed in between; plan again")

// ApplyOptions say how a plan is run.
type ApplyOptions struct {
	RunID       string
	ForceUnlock bool
	Emit        func(apply.Event)
	Stop        <-chan struct{} // closed: finish the running steps and begin no other

	// Lease is the caller's own, held, and released by the caller, who elects a leader itself; nil: a run about the cluster takes the
	// cluster's.
	Lease Lease

	locks *lockSet
}

// NewRunID returns a name for a run: its time, and something random.
func (e *Engine) NewRunID() string {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // never fails
	return e.opt.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random)
}

// Apply runs the plan of an approved look. It takes the lock, looks again, and runs only if the plan is still the same;
// otherwise it is ErrWorldChanged and nothing was changed. Afterwards it looks once more: the returned look's plan is
// empty if the cluster is now as wanted.
func (e *Engine) Apply(ctx context.Context, approved Look, o ApplyOptions) (Look, error) {
	if e.bundle != nil {
		if err := e.bundle.Verify(ctx); err != nil {
			return approved, &ConfigError{err}
		}
	}
	locks, err := e.lock(ctx, plan.LockScope(approved.Plan, e.want, approved.Result.World), leaseVia(approved), o)
	if err != nil {
		return approved, err
	}
	defer locks.release(ctx)
	now, err := e.Look(ctx)
	if err != nil {
		return approved, err
	}
	if now.Plan.Digest() != approved.Plan.Digest() {
		return now, ErrWorldChanged
	}
	o.locks = locks
	err = locks.guard(ctx, func(ctx context.Context) error { return e.run(ctx, now, o) })
	if err != nil {
		return now, err
	}
	if len(now.Plan.Operator) > 0 {
		return e.Look(ctx) // something remains, and waiting does not change it
	}
	if !now.Plan.Complete() {
		return e.LookUntilUp(ctx)
	}
	return e.lookUntil(ctx, matches)
}

// reached are the hosts that answered.
func (e *Engine) reached(l Look) map[string]host.Host {
	out := map[string]host.Host{}
	for id, h := range l.Result.World.Hosts {
		if h.Reach == observed.Reached {
			out[id] = e.hosts[id]
		}
	}
	return out
}

func (e *Engine) run(ctx context.Context, l Look, o ApplyOptions) error {
	return e.runFrom(ctx, l, o, nil)
}

// runFrom runs a plan that restores from the copy, if it has one.
func (e *Engine) runFrom(ctx context.Context, l Look, o ApplyOptions, from *apply.Copy) error {
	r := &apply.Run{
		Copy: from,
		Plan: l.Plan, Want: e.want, World: l.Result.World, Hosts: e.reached(l), Scripts: l.Scripts, Addons: e.addons,
		Manifest: string(e.loaded.ManifestText), Lock: o.locks.hosts, RunID: o.RunID, Holder: Holder(), Parallel: e.opt.Parallel,
		Emit: o.Emit, Now: e.opt.Now, Etcd: l.Result.Etcd, CheckLock: o.locks.check,
		Perhaps: l.Result.Access, Absent: e.absent(l.Plan, l.Result.World),
	}
	if l.Result.World.API.Reached == observed.Yes {
		r.Access = l.Result.Access
	}
	if e.bundle != nil {
		r.Blobs = blobs{e}
	}
	return r.Do(ctx, o.Stop)
}

// blobs is the bundle's content.
type blobs struct{ e *Engine }

// Blob returns the file with that sha256 (hex) and its size.
func (b blobs) Blob(sum string) (io.Reader, int64, error) {
	content, ok := b.e.bundle.Blob(sum)
	if !ok {
		return nil, 0, fmt.Errorf("no bundle has %s", sum)
	}
	size := content.Size()
	return content, size, nil
}

// Await waits for the steps of earlier runs that still run.
func (e *Engine) Await(ctx context.Context, l Look) error {
	for id := range l.RunningSteps() {
		if err := apply.Await(ctx, e.hosts[id]); err != nil {
			return err
		}
	}
	return nil
}
