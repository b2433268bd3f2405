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
)

// ErrWorldChanged means that between the plan's approval and its start the world became another.
var ErrWorldChanged = errors.New("the plan that was approved is not the plan that would run now: something changed in between; plan again")

// ApplyOptions say how a plan is run.
type ApplyOptions struct {
	RunID       string
	ForceUnlock bool
	Emit        func(apply.Event)
	Stop        <-chan struct{} // closed: finish the running steps and begin no other

	mine func(context.Context) error // as apply.Run.Mine
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
	lock, err := apply.TakeLock(ctx, e.lockable(approved), Holder(), o.RunID, o.ForceUnlock)
	if err != nil {
		return approved, err
	}
	defer lock.Release()
	lease, err := e.lease(ctx, approved, o)
	if err != nil {
		return approved, err
	}
	defer lease.release(ctx)
	now, err := e.Look(ctx)
	if err != nil {
		return approved, err
	}
	if now.Plan.Digest() != approved.Plan.Digest() {
		return now, ErrWorldChanged
	}
	o.mine = func(ctx context.Context) error { return lease.mine(ctx, lock) }
	err = lease.guard(ctx, lock, func(ctx context.Context) error { return e.run(ctx, now, lock, o) })
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

// lockable are the hosts whose lock a run takes: all that answer.
func (e *Engine) lockable(l Look) map[string]host.Host {
	out := map[string]host.Host{}
	for id, h := range l.Result.World.Hosts {
		if h.Reach == observed.Reached {
			out[id] = e.hosts[id]
		}
	}
	return out
}

func (e *Engine) run(ctx context.Context, l Look, lock *apply.Lock, o ApplyOptions) error {
	return e.runFrom(ctx, l, lock, o, nil)
}

// runFrom runs a plan that restores from the copy, if it has one.
func (e *Engine) runFrom(ctx context.Context, l Look, lock *apply.Lock, o ApplyOptions, from *apply.Copy) error {
	r := &apply.Run{
		Copy: from,
		Plan: l.Plan, Want: e.want, World: l.Result.World, Hosts: e.lockable(l), Scripts: l.Scripts, Addons: e.addons,
		Manifest: string(e.loaded.ManifestText), Lock: lock, RunID: o.RunID, Holder: Holder(), Parallel: e.opt.Parallel,
		Emit: o.Emit, Now: e.opt.Now, Etcd: l.Result.Etcd, Mine: o.mine,
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
		return nil, 0, fmt.Errorf("%s is not in the bundle %s", sum, b.e.bundle.Path())
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
