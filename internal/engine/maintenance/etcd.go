// Package maintenance is what an operator does by hand with a living cluster's etcd: look at its members, take a
// snapshot or a backup, give unused space back, take alarms back. None of it is a plan, and no host is changed by it.
// It knows no files: what is read goes to a writer.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// Etcd is a connection to a cluster's etcd. Its methods are not for concurrent use. Close it.
type Etcd struct {
	client *etcd.Client
	engine *engine.Engine
	seen   probe.Result
}

// Open observes the cluster and connects to the first voting member that answers. Without one it is an
// *engine.EtcdError.
func Open(ctx context.Context, e *engine.Engine) (*Etcd, error) {
	seen, err := e.Observe(ctx)
	if err != nil {
		return nil, err
	}
	if seen.Etcd == nil {
		return nil, &engine.EtcdError{
			Err: errors.New("no control-plane host that answers has credentials of etcd; see kubeone status"),
		}
	}
	access := *seen.Etcd
	access.Answer = etcd.PatientAnswer
	client, err := etcd.Connect(ctx, access)
	if err != nil {
		return nil, etcdError(err)
	}
	return &Etcd{client: client, engine: e, seen: seen}, nil
}

// Close ends the connection.
func (e *Etcd) Close() { _ = e.client.Close() } // nothing depends on how it ends

// Survey asks all members how they are, and compares what they hold.
func (e *Etcd) Survey(ctx context.Context) (etcd.Survey, error) {
	s, err := e.client.Survey(ctx)
	return s, etcdError(err)
}

// Via is the name of the host whose member is asked.
func (e *Etcd) Via() string {
	want := e.engine.Want()
	h, ok := want.Host(e.client.Via())
	if !ok {
		return e.client.Via()
	}
	return plan.NodeName(h, e.seen.World.Hosts[h.ID])
}

// Alone reports whether the member that is asked sees no leader: what it gives is what it last knew, and may be older
// than what the cluster had agreed upon.
func (e *Etcd) Alone() bool { return e.client.Greeting().Leader == 0 }

// Snapshot has a verified snapshot taken by save, which gets the member to take it from. A snapshot of another cluster
// than the API says is an error; what save made of it must not be kept. It holds all Secrets of the cluster.
func (e *Etcd) Snapshot(save func(from snapshot.Source) (snapshot.Info, error)) (snapshot.Info, error) {
	info, err := save(e.client)
	if err != nil {
		return info, etcdError(err)
	}
	if err := info.OfCluster(e.seen.World.API.ClusterID); err != nil {
		return info, etcdError(fmt.Errorf("snapshot of etcd on %s: %w", e.Via(), err))
	}
	return info, nil
}

// WriteSnapshot writes a snapshot to w once it is taken and verified. Until then it is in memory, as much as the
// database is large. An error of w is returned as it is.
func (e *Etcd) WriteSnapshot(ctx context.Context, w io.Writer) (snapshot.Info, error) {
	var taken *os.File
	info, err := e.Snapshot(func(from snapshot.Source) (info snapshot.Info, err error) {
		taken, info, err = snapshot.Take(ctx, from)
		return info, err
	})
	if taken != nil {
		defer func() { _ = taken.Close() }() // its memory is freed
	}
	if err != nil {
		return info, err
	}
	_, err = io.Copy(w, io.NewSectionReader(taken, 0, info.Size))
	return info, err
}

// Defragment gives unused space back, of the member or, if that is "", of all one after the other, under the cluster's
// lock. It refuses when any member is not healthy. A member is its name, its ID in hex, or whatever names its host; one
// that there is not is an *engine.ConfigError.
func (e *Etcd) Defragment(ctx context.Context, member string, force bool, tell func(etcd.Defragmented)) error {
	return e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) error {
		return etcdError(e.client.Defragment(ctx, e.memberName(member), tell))
	})
}

// Disarm takes alarms back, of the member or, if that is "", of all, under the cluster's lock. A member is named as for
// Defragment.
func (e *Etcd) Disarm(ctx context.Context, member string, force bool) (done []etcd.Disarmed, err error) {
	err = e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) (err error) {
		done, err = e.client.Disarm(ctx, e.memberName(member))
		return etcdError(err)
	})
	return done, err
}

// memberName is the name of the member of the host that a person names; a name that is no host's stays as it is.
func (e *Etcd) memberName(name string) string {
	want := e.engine.Want()
	if h, ok := want.Host(name); ok && name != "" {
		return plan.NodeName(h, e.seen.World.Hosts[h.ID])
	}
	return name
}

func etcdError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, etcd.ErrNotFound):
		return &engine.ConfigError{Err: err}
	}
	return &engine.EtcdError{Err: err}
}
