package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/etcd"
	"kubeone/internal/locks"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// drainNode empties a node. One that cannot be emptied is opened again, so that nothing is lost by having tried.
func (r *Run) drainNode(ctx context.Context, client API, s plan.Step) error {
	d := step.ParamsOf[step.DrainNodeParams](s.Intent)
	opts := drain.Options{
		Mark:    r.RunID,
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds,
		Force: d.OnTimeout == step.ForceOnTimeout, MaxUnavailable: d.MaxUnavailable,
		Full: func(e *drain.FullError) {
			r.emitEvent(Event{Type: StepOutput, Step: s.ID, Host: r.displayName(s.Host), Line: "waiting for room: " +
				e.Error()})
		},
		Evicted: func(pod string) {
			r.emitEvent(Event{Type: StepOutput, Step: s.ID, Host: r.displayName(s.Host), Line: "evicted " + pod})
		},
	}
	err := client.Drain(ctx, s.Intent.NodeName, opts)
	if err == nil || errors.Is(context.Cause(ctx), locks.ErrLost) {
		return err // and whoever has the lock now decides about the node
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), UncordonTimeout)
	defer cancel()
	if r.Lock.CheckDispensable(ctx, s.Host) != nil {
		return err
	}
	if again := client.Uncordon(ctx, s.Intent.NodeName); again != nil {
		return errors.Join(err, again)
	}
	if blocked := (*drain.BlockedError)(nil); !errors.As(err, &blocked) {
		return fmt.Errorf("%w; the node is uncordoned: run kubeone apply again", err)
	}
	return fmt.Errorf("%w; the node is uncordoned. Make room for its pods or change their budgets and apply again, or "+
		"see upgrade.drain in the manifest", err)
}

// uncordonLeft opens the nodes that were drained for what then never began.
func (r *Run) uncordonLeft(ctx context.Context, drained []plan.Step) error {
	if len(drained) == 0 {
		return nil
	}
	client, err := r.apiClient() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), UncordonTimeout)
	defer cancel()
	var errs []error
	for _, s := range drained {
		if denied := r.Lock.CheckDispensable(ctx, s.Host); denied != nil {
			errs = append(errs, denied)
			continue
		}
		errs = append(errs, client.Uncordon(ctx, s.Intent.NodeName))
	}
	return errors.Join(errs...)
}

// uncordonNode waits until the node is Ready in the wanted version, and after the upgrade of a control-plane host until
// all voters of etcd are healthy and controllers lead, and lets pods onto it again. One that an earlier run left
// cordoned does not wait for other hosts' members.
func (r *Run) uncordonNode(ctx context.Context, client API, s plan.Step) error {
	params := step.ParamsOf[step.UncordonParams](s.Intent)
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version, params.Containerd); err != nil {
		return err
	}
	if after := BeforeUncordon(s.Intent); after != nil {
		if err := r.checkEtcd(ctx, after); err != nil {
			return err
		}
		if err := client.WaitLeading(ctx); err != nil {
			return err
		}
	}
	return client.Uncordon(ctx, s.Intent.NodeName)
}

// checkGuard asks etcd, as it is now, whether the step may run.
func (r *Run) checkGuard(ctx context.Context, s plan.Step) error {
	return r.checkEtcd(ctx, BeforeStep(s, r.Want, r.World))
}

// checkEtcd asks etcd until it is as the check wants it; a nil one wants nothing.
func (r *Run) checkEtcd(ctx context.Context, c *EtcdCheck) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	for {
		problem, err := r.askEtcd(ctx, etcdWithout(r.Etcd, c.Without), c.Wrong)
		if problem == "" && err == nil {
			return nil
		}
		if err != nil {
			return &EtcdError{err}
		}
		if !r.pause(ctx, RetryEvery) {
			return &EtcdError{fmt.Errorf(
				"gave up after %s waiting for %s: %s; kubeone status shows its members", EtcdTimeout, c.What, problem)}
		}
	}
}

// askEtcd asks once. That nobody answers is a problem, and no error.
func (r *Run) askEtcd(
	ctx context.Context, via *etcd.Access, wrong func(observed.Etcd) (string, error),
) (problem string, err error) {
	client, err := r.Connect.connectEtcd(ctx, via)
	if err != nil {
		return err.Error(), nil
	}
	defer func() { _ = client.Close() }()
	seen, err := client.Observe(ctx)
	if err != nil {
		return err.Error(), nil
	}
	return wrong(seen)
}
