// Package maintenance contains manual operations on the etcd of a running cluster: survey members, take snapshots and
// backups, defragment, and disarm alarms. They need no plan and do not change hosts. The package does not open files;
// content is written to a writer.
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
			Err: errors.New("no control-plane host that answers has etcd credentials; see kubeone status"),
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
func (e *Etcd) Close() { _ = e.client.Close() } // an error has no consequences

// Survey checks all members and compares their data.
func (e *Etcd) Survey(ctx context.Context) (etcd.Survey, error) {
	s, err := e.client.Survey(ctx)
	return s, etcdError(err)
}

// ConnectedHost returns the Node name of the host whose etcd member the client is connected to. If the host is not in
// the manifest, it returns the client's own name for it.
func (e *Etcd) ConnectedHost() string {
	want := e.engine.Want()
	h, ok := want.Host(e.client.HostID())
	if !ok {
		return e.client.HostID()
	}
	return plan.NodeName(h, e.seen.World.Hosts[h.ID])
}

// WithoutQuorum reports whether the connected member sees no leader. Its data may then be outdated.
func (e *Etcd) WithoutQuorum() bool { return e.client.Greeting().Leader == 0 }

// Snapshot calls save with the member to take a verified snapshot from. If the snapshot belongs to a cluster other than
// that of the API, it returns an error, and the caller must delete what save wrote. A snapshot contains all Secrets of
// the cluster.
func (e *Etcd) Snapshot(save func(from snapshot.Source) (snapshot.Info, error)) (snapshot.Info, error) {
	info, err := save(e.client)
	if err != nil {
		return info, etcdError(err)
	}
	if err := info.OfCluster(e.seen.World.API.ClusterID); err != nil {
		return info, etcdError(fmt.Errorf("snapshot of etcd on %s: %w", e.ConnectedHost(), err))
	}
	return info, nil
}

// WriteSnapshot takes and verifies a snapshot, then writes it to w. It needs enough memory to hold the database. It
// returns errors of w unchanged.
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

// Defragment defragments the given member or, if it is "", all members one at a time, under the cluster lock. It
// returns an error if any member is not healthy. A member can be given by name, by ID in hex, or by any name of its
// host. If the member is unknown, the error is an *engine.ConfigError.
func (e *Etcd) Defragment(ctx context.Context, member string, force bool, tell func(etcd.Defragmented)) error {
	return e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) error {
		return etcdError(e.client.Defragment(ctx, e.memberName(member), tell))
	})
}

// Disarm disarms the alarms of the given member or, if it is "", of all members, under the cluster lock. Members are
// given as for Defragment.
func (e *Etcd) Disarm(ctx context.Context, member string, force bool) (done []etcd.Disarmed, err error) {
	err = e.engine.Exclusively(ctx, e.seen, force, func(ctx context.Context) (err error) {
		done, err = e.client.Disarm(ctx, e.memberName(member))
		return etcdError(err)
	})
	return done, err
}

// memberName returns the name of the member on the given host. If there is no host with that name, it returns the name
// unchanged.
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
