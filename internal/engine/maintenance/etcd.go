// Package maintenance has manual operations on the etcd of a living cluster: survey members, take snapshots and
// backups, defragment, disarm alarms. They are not plans and change no host. The package knows no files: content goes
// to a writer.
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

// Etcd is a connection to a cluster's etcd. Its methods are not safe for concurrent use. The caller closes it.
type Etcd struct {
	client *etcd.Client
	engine *engine.Engine
	seen   probe.Result
}

// Open observes the cluster and connects to the first voting member that answers. If there is none, the error is an
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

// Close closes the connection.
func (e *Etcd) Close() { _ = e.client.Close() } // the result does not matter

// Survey checks all members and compares their data.
func (e *Etcd) Survey(ctx context.Context) (etcd.Survey, error) {
	s, err := e.client.Survey(ctx)
	return s, etcdError(err)
}

// Via returns the name of the host with the connected member.
func (e *Etcd) Via() string {
	want := e.engine.Want()
	h, ok := want.Host(e.client.Via())
	if !ok {
		return e.client.Via()
	}
	return plan.NodeName(h, e.seen.World.Hosts[h.ID])
}

// Alone reports whether the connected member sees no leader. Its data may then be older than the cluster's.
func (e *Etcd) Alone() bool { return e.client.Greeting().Leader == 0 }

// Snapshot calls save with the member to take a verified snapshot from. A snapshot of another cluster than the API's
// is an error, and what save wrote must not be kept. It holds all Secrets of the cluster.
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

// WriteSnapshot writes a snapshot to w after taking and verifying it. Until then it needs as much memory as the
// database. An error of w is returned unchanged.
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

// Defragment defragments the member or, if that is "", all members in turn, under the cluster's lock. It refuses if
// any member is not healthy. A member is given by name, ID in hex, or any name of its host. An unknown member is an
// *engine.ConfigError.
func (e *Etcd) Defragment(ctx context.Context, member string, force bool, tell func(etcd.Defragmented)) error {
	return e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) error {
		return etcdError(e.client.Defragment(ctx, e.memberName(member), tell))
	})
}

// Disarm disarms the alarms of the member or, if that is "", of all members, under the cluster's lock. Members are
// given as for Defragment.
func (e *Etcd) Disarm(ctx context.Context, member string, force bool) (done []etcd.Disarmed, err error) {
	err = e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) (err error) {
		done, err = e.client.Disarm(ctx, e.memberName(member))
		return etcdError(err)
	})
	return done, err
}

// memberName returns the name of the member on the given host; other names stay as they are.
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
