package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

const (
	reopenTimeout = 30 * time.Second // to open a node again that could not be drained
	etcdTimeout   = 2 * time.Minute  // for etcd to be as the next step needs it
)

// drainTime is how long a drain may take, twice where pods are deleted after it.
func drainTime(i plan.Intent) time.Duration {
	if i.Drain == nil {
		return 0
	}
	return 2 * time.Duration(i.Drain.TimeoutSeconds) * time.Second
}

// drain empties a node. One that cannot be emptied is opened again, so that nothing is lost by having tried.
func (r *Run) drain(ctx context.Context, client API, s plan.Step) error {
	d := s.Intent.Drain
	if d == nil {
		return client.Drain(ctx, s.Intent.NodeName, cluster.DrainOptions{})
	}
	if err := r.mayStop(ctx, s); err != nil {
		return err
	}
	opts := cluster.DrainOptions{
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds, Force: d.OnTimeout == plan.ForceOnTimeout,
		Evicted: func(pod string) {
			r.emit(Event{Type: StepOutput, Step: s.ID, Host: r.name(s.Host), Line: "evicted " + pod})
		},
	}
	if d.Upgrade {
		opts.Mark = r.RunID
	}
	err := client.Drain(ctx, s.Intent.NodeName, opts)
	var blocked *cluster.DrainBlockedError
	if !errors.As(err, &blocked) || errors.Is(context.Cause(ctx), ErrLockLost) {
		return err // and whoever has the lock now decides about the node
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
	defer cancel()
	if again := client.Reopen(ctx, s.Intent.NodeName); again != nil {
		return errors.Join(err, again)
	}
	return fmt.Errorf("%w; the node is open again. Make room for its pods or change their budgets and apply again, or see upgrade.drain in the manifest", err)
}

// openAgain opens the nodes that were drained for upgrades which never began.
func (r *Run) openAgain(ctx context.Context, drained []plan.Step) error {
	if len(drained) == 0 {
		return nil
	}
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
	defer cancel()
	var errs []error
	for _, s := range drained {
		errs = append(errs, client.Reopen(ctx, s.Intent.NodeName))
	}
	return errors.Join(errs...)
}

// reopen waits until the node is Ready in the wanted version, and after the turn of a control-plane host until all of etcd is
// healthy, and lets pods onto it again. One that an earlier run left closed does not wait for other hosts' members.
func (r *Run) reopen(ctx context.Context, client API, s plan.Step) error {
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version); err != nil {
		return err
	}
	if s.Intent.Role == desired.ControlPlane && !s.Intent.Resume {
		if err := r.awaitEtcd(ctx, "every member of etcd healthy", allHealthy); err != nil {
			return err
		}
	}
	return client.Reopen(ctx, s.Intent.NodeName)
}

func allHealthy(e observed.Etcd) string {
	for _, m := range e.Members {
		if m.Healthy != observed.Yes {
			return "member " + m.Name + " (" + m.ID + ") is not healthy"
		}
	}
	return ""
}

// mayStop waits until the host's etcd member may be stopped for a while, as the rules of the quorum say of etcd as it is now.
func (r *Run) mayStop(ctx context.Context, s plan.Step) error {
	if s.Intent.Role != desired.ControlPlane {
		return nil
	}
	return r.awaitEtcd(ctx, "a quorum without "+s.Intent.NodeName, func(e observed.Etcd) string {
		for _, m := range e.Members {
			if m.Name == s.Intent.NodeName {
				if v := decide.SafeToStop(e.Members, m.ID); !v.Safe {
					return v.Why
				}
				return ""
			}
		}
		return "etcd has no member " + s.Intent.NodeName
	})
}

// awaitEtcd asks etcd until nothing is wrong.
func (r *Run) awaitEtcd(ctx context.Context, what string, wrong func(observed.Etcd) string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	for {
		problem := r.askEtcd(ctx, wrong)
		if problem == "" {
			return nil
		}
		if err := r.pause(ctx, retryEvery); err != nil {
			return fmt.Errorf("waited for %s: %s", what, problem)
		}
	}
}

func (r *Run) askEtcd(ctx context.Context, wrong func(observed.Etcd) string) string {
	client, err := r.Connect.etcd(ctx, r.Etcd)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = client.Close() }()
	seen, err := client.Observe(ctx)
	if err != nil {
		return err.Error()
	}
	return wrong(seen)
}
