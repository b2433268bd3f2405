package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kubeone/internal/decide"
	"kubeone/internal/etcd"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/script"
)

// EtcdError is a failure of etcd, or of what was asked of it. Nothing is lost by it.
type EtcdError struct{ Err error }

// Error is the cause's text.
func (e *EtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EtcdError) Unwrap() error { return e.Err }

// Etcd is a connection to a cluster's etcd. Its methods are not for concurrent use. Close it.
type Etcd struct {
	client *etcd.Client
	engine *Engine
	seen   probe.Result
}

// OpenEtcd probes the hosts and connects to the first voting member that answers.
func (e *Engine) OpenEtcd(ctx context.Context) (*Etcd, error) {
	result, err := e.probe(ctx)
	if err != nil {
		return nil, err
	}
	if result.Etcd == nil {
		return nil, &EtcdError{errors.New("no control-plane host that answers has credentials of etcd; see kubeone status")}
	}
	client, err := etcd.Connect(ctx, *result.Etcd)
	if err != nil {
		return nil, &EtcdError{err}
	}
	return &Etcd{client: client, engine: e, seen: result}, nil
}

// Close ends the connection.
func (e *Etcd) Close() { _ = e.client.Close() } // nothing depends on how it ends

// Survey asks all members how they are, and compares what they hold.
func (e *Etcd) Survey(ctx context.Context) (etcd.Survey, error) {
	s, err := e.client.Survey(ctx)
	return s, etcdError(err)
}

// Via is the name of the host whose member is asked.
func (e *Etcd) Via() string { return e.engine.displayName(e.client.Via(), e.seen) }

// Alone reports whether the member that is asked sees no leader: what it gives is what it last knew, and may be older than
// what the cluster had agreed upon.
func (e *Etcd) Alone() bool { return e.client.Greeting().Leader == 0 }

// SnapshotPath is a name for a snapshot in the directory given: the cluster's, and the time.
func (e *Etcd) SnapshotPath(dir string) string {
	return filepath.Join(dir, snapshot.FileName(e.engine.want.Name, e.engine.opt.Now(), "by-hand"))
}

// Snapshot saves a verified snapshot on the operator's machine, mode 0600. It holds all Secrets of the cluster. A folder is
// given a file with a name of its own. One that is of another cluster than the API says is an error and not kept.
func (e *Etcd) Snapshot(ctx context.Context, path string) (string, snapshot.Info, error) {
	if stat, err := os.Stat(path); err == nil && stat.IsDir() {
		path = e.SnapshotPath(path)
	}
	info, err := snapshot.Save(ctx, e.client, path)
	if err != nil {
		return path, info, etcdError(err)
	}
	if err := info.OfCluster(e.seen.World.API.ClusterID); err != nil {
		return path, info, errors.Join(&EtcdError{fmt.Errorf("snapshot of etcd on %s: %w", e.Via(), err)}, os.Remove(path))
	}
	return path, info, nil
}

// Defragment gives unused space back, one member after the other, under the cluster's lock. It refuses when a member is not
// healthy.
func (e *Etcd) Defragment(ctx context.Context, force bool, tell func(etcd.Defragmented)) error {
	return e.locked(ctx, force, func() error { return e.client.Defragment(ctx, tell) })
}

// Disarm takes alarms back, under the cluster's lock.
func (e *Etcd) Disarm(ctx context.Context, force bool) (done []etcd.Disarmed, err error) {
	err = e.locked(ctx, force, func() (err error) {
		done, err = e.client.Disarm(ctx)
		return err
	})
	return done, err
}

// locked does something as the only operator.
func (e *Etcd) locked(ctx context.Context, force bool, do func() error) error {
	seen := Look{Result: e.seen}
	o := ApplyOptions{RunID: e.engine.NewRunID(), ForceUnlock: force}
	locks, err := e.engine.lock(ctx, plan.ClusterScope(e.engine.want, e.seen.World), leaseVia(seen), o)
	if err != nil {
		return err
	}
	defer locks.release(ctx)
	return etcdError(do())
}

func etcdError(err error) error {
	if err == nil {
		return nil
	}
	return &EtcdError{err}
}

// displayName is how messages call a host.
func (e *Engine) displayName(id string, seen probe.Result) string {
	h, ok := e.want.Host(id)
	if !ok {
		return id
	}
	return plan.NodeName(h, seen.World.Hosts[h.ID])
}

// LookSnapshots probes and plans a snapshot on every control-plane host that answers and has etcd's data, one after the
// other. It also brings the hosts' timer up to the manifest's schedule.
func (e *Engine) LookSnapshots(ctx context.Context) (Look, error) {
	result, err := e.probe(ctx)
	if err != nil {
		return Look{}, err
	}
	in := decide.Input{Want: e.want, Is: result.World}
	l := Look{Result: result, Plan: plan.Snapshots(in), Scripts: map[string]string{}, Decisions: []decide.Decision{decide.Decide(in)}}
	if len(l.Plan.Steps) == 0 {
		return Look{}, &EtcdError{errors.New("no control-plane host that answers has etcd's data; see kubeone status")}
	}
	l.Plan.FirstContacts = firstContacts(result.World)
	for _, s := range l.Plan.Steps {
		h, _ := e.want.Host(s.Host)
		in := script.Input{Want: e.want, Host: h, NodeName: l.Plan.Hosts[h.ID], Arch: result.World.Hosts[h.ID].Arch, Reason: "by-hand"}
		in.Want.Artifacts = nil // nothing is installed
		if l.Scripts[h.ID], err = script.Render(in); err != nil {
			return Look{}, err
		}
	}
	plan.Sign(&l.Plan, digests(l.Scripts))
	return l, nil
}

// TakeSnapshots carries out the plan of a LookSnapshots.
func (e *Engine) TakeSnapshots(ctx context.Context, approved Look, o ApplyOptions) error {
	_, err := e.carryOut(ctx, approved, o, e.LookSnapshots)
	return err
}

// SnapshotDir is where hosts keep their own snapshots.
const SnapshotDir = script.SnapshotDir
