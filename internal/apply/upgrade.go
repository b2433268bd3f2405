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

// drainNode drains a node. If that fails it uncordons the node again.
func (r *Run) drainNode(ctx context.Context, client API, s plan.Step) error {
	d := step.ParamsOf[step.DrainNodeParams](s.Intent)
	opts := drain.Options{
		Mark:    r.RunID,
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds,
		Force: d.OnTimeout == step.ForceOnTimeout, MaxUnavailable: d.MaxUnavailable,
		Full: func(e *drain.FullError) {
			r.emitEvent(Event{Type: StepOutput, Step: s.ID, Host: r.displayName(s.Host),
				Line: "waiting for free capacity: " +
					e.Error()})
		},
		Evicted: func(pod string) {
			r.emitEvent(Event{Type: StepOutput, Step: s.ID, Host: r.displayName(s.Host), Line: "evicted " + pod})
		},
	}
	err := client.Drain(ctx, s.Intent.NodeName, opts)
	if err == nil || errors.Is(context.Cause(ctx), locks.ErrLost) {
		return err // leave the node to the run that took the lock
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), UncordonTimeout)
	defer cancel()
	if r.Lock.CheckDispensable(ctx, s.Host) != nil {
		return err
	}
	if uncordonErr := client.Uncordon(ctx, s.Intent.NodeName); uncordonErr != nil {
		return errors.Join(err, uncordonErr)
	}
	if blocked := (*drain.BlockedError)(nil); !errors.As(err, &blocked) {
		return fmt.Errorf("%w; the node is uncordoned: run kubeone apply again", err)
	}
	return fmt.Errorf("%w; the node is uncordoned. Add capacity or change the disruption budgets of its pods, then run "+
		"kubeone apply again; see also upgrade.drain in the manifest", err)
}

// uncordonUnchanged uncordons nodes that were drained for steps that were then skipped.
func (r *Run) uncordonUnchanged(ctx context.Context, drained []plan.Step) error {
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

// uncordonNode waits until the node is Ready in the desired version, then uncordons it. After the upgrade of a
// control-plane host it also waits until all etcd voters are healthy and the controllers have a leader. A node that an
// earlier run left cordoned does not wait for members on other hosts.
func (r *Run) uncordonNode(ctx context.Context, client API, s plan.Step) error {
	params := step.ParamsOf[step.UncordonParams](s.Intent)
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version, params.Containerd); err != nil {
		return err
	}
	if after := EtcdCheckBeforeUncordon(s.Intent); after != nil {
		if err := r.checkEtcd(ctx, after); err != nil {
			return err
		}
		if err := client.WaitLeading(ctx); err != nil {
			return err
		}
	}
	return client.Uncordon(ctx, s.Intent.NodeName)
}

// checkGuard waits until the current state of etcd allows the step.
func (r *Run) checkGuard(ctx context.Context, s plan.Step) error {
	return r.checkEtcd(ctx, EtcdCheckBeforeStep(s, r.Want, r.World))
}

// checkEtcd queries etcd until the check passes, for at most EtcdTimeout. A nil check always passes.
func (r *Run) checkEtcd(ctx context.Context, c *EtcdCheck) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	for {
		problem, err := r.askEtcd(ctx, avoidHost(r.Etcd, c.Without), c.Wrong)
		if problem == "" && err == nil {
			return nil
		}
		if err != nil {
			return &EtcdError{err}
		}
		if !r.pause(ctx, RetryEvery) {
			return &EtcdError{fmt.Errorf(
				"gave up after %s waiting for %s: %s; run kubeone status to see the etcd members", EtcdTimeout, c.What, problem)}
		}
	}
}

// askEtcd queries etcd once and returns what is still missing. An unreachable etcd counts as missing, not as an error.
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
