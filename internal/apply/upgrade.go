package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/etcd"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/step"
)

const (
	uncordonTimeout = 30 * time.Second // to open a node again that could not be drained
	etcdTimeout     = 2 * time.Minute  // for etcd to be as the next step needs it
)

// drainTime is how long a drain may take, twice where pods are deleted after it.
func drainTime(i step.Intent) time.Duration {
	return 2 * time.Duration(step.ParamsOf[step.DrainNodeParams](i).TimeoutSeconds) * time.Second
}

// drain empties a node. One that cannot be emptied is opened again, so that nothing is lost by having tried.
func (r *Run) drain(ctx context.Context, client API, s plan.Step) error {
	d := step.ParamsOf[step.DrainNodeParams](s.Intent)
	opts := drain.Options{
		Mark:    r.RunID,
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds, Force: d.OnTimeout == step.ForceOnTimeout,
		Evicted: func(pod string) {
			r.emit(Event{Type: StepOutput, Step: s.ID, Host: r.name(s.Host), Line: "evicted " + pod})
		},
	}
	err := r.empty(ctx, client, s, opts)
	if err == nil || unfinished(err) || errors.Is(context.Cause(ctx), ErrLockLost) {
		return err // and whoever has the lock now decides about the node
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uncordonTimeout)
	defer cancel()
	if again := client.Uncordon(ctx, s.Intent.NodeName); again != nil {
		return errors.Join(err, again)
	}
	if blocked := (*drain.BlockedError)(nil); !errors.As(err, &blocked) {
		return fmt.Errorf("%w; the node is uncordoned: run kubeone apply again", err)
	}
	return fmt.Errorf("%w; the node is uncordoned. Make room for its pods or change their budgets and apply again, or see upgrade.drain in the manifest", err)
}

// empty takes the pods off the node, or, in a pass, asks them to leave.
func (r *Run) empty(ctx context.Context, client API, s plan.Step, opts drain.Options) error {
	if r.at != nil {
		return r.drainPass(ctx, client, s, opts)
	}
	return client.Drain(ctx, s.Intent.NodeName, opts)
}

// uncordonLeft opens the nodes that were drained for what then never began.
func (r *Run) uncordonLeft(ctx context.Context, drained []plan.Step) error {
	if len(drained) == 0 {
		return nil
	}
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uncordonTimeout)
	defer cancel()
	var errs []error
	for _, s := range drained {
		errs = append(errs, client.Uncordon(ctx, s.Intent.NodeName))
	}
	return errors.Join(errs...)
}

// uncordon waits until the node is Ready in the wanted version, and after the upgrade of a control-plane host until
// all voters of etcd are healthy and controllers lead, and lets pods onto it again. One that an earlier run left
// cordoned does not wait for other hosts' members.
func (r *Run) uncordon(ctx context.Context, client API, s plan.Step) error {
	params := step.ParamsOf[step.UncordonParams](s.Intent)
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version, params.Containerd); err != nil {
		return err
	}
	if s.Intent.Role == desired.ControlPlane && !params.Resume {
		if err := r.awaitEtcd(ctx, r.Etcd, "every voter of etcd healthy", allHealthy); err != nil {
			return err
		}
		if err := client.WaitLeading(ctx); err != nil {
			return err
		}
	}
	return client.Uncordon(ctx, s.Intent.NodeName)
}

// allHealthy names a voter that is not healthy. A learner has no vote, and may stay one as long as its own host is
// away.
func allHealthy(e observed.Etcd) string {
	for _, m := range e.Members {
		if !m.Learner && m.Healthy != observed.Yes {
			return "member " + m.Name + " (" + m.ID + ") is not healthy"
		}
	}
	return ""
}

// mayStop waits until the host's etcd member may be stopped for a while, as the rules of the quorum say of etcd as
// it is now.
func (r *Run) mayStop(ctx context.Context, s plan.Step) error {
	if s.Intent.Role != desired.ControlPlane {
		return nil
	}
	return r.awaitEtcd(ctx, r.Etcd, "a quorum without "+s.Intent.NodeName, func(e observed.Etcd) string {
		m, found := r.memberOn(e, s)
		if !found {
			return "etcd has no member " + s.Intent.NodeName
		}
		if v := quorum.SafeToStop(e.Members, m.ID); !v.Safe {
			return v.Why
		}
		return ""
	})
}

// memberOn is the member of the step's host.
func (r *Run) memberOn(e observed.Etcd, s plan.Step) (observed.Member, bool) {
	want, _ := r.Want.Host(s.Host)
	i := match.MemberIndex(e.Members, want, s.Intent.NodeName)
	if i < 0 {
		return observed.Member{}, false
	}
	return e.Members[i], true
}

// checkGuard asks etcd, as it is now, whether the step may run.
func (r *Run) checkGuard(ctx context.Context, s plan.Step) error {
	switch s.Intent.Guard() {
	case step.MemberMayStop:
		return r.mayStop(ctx, s)
	case step.HealthyMemberMayStop:
		if r.wasHealthy(s) {
			return r.mayStop(ctx, s)
		}
	case step.MemberHasLeft:
		return r.hasLeft(ctx, s)
	case step.NoGuard:
	}
	return nil
}

// wasHealthy reports whether the host's member was well, as the plan found it, in an etcd with a quorum.
func (r *Run) wasHealthy(s plan.Step) bool {
	was := r.World.Etcd
	m, found := r.memberOn(was, s)
	return quorum.Count(was.Members).Holds() && found && m.Healthy == observed.Yes
}

// hasLeft makes sure that the step's host has no member in etcd.
func (r *Run) hasLeft(ctx context.Context, s plan.Step) error {
	var listed *observed.Member
	err := r.awaitEtcd(ctx, etcdWithout(r.Etcd, s.Host), "its list of members", func(e observed.Etcd) string {
		listed = nil
		if m, found := r.memberOn(e, s); found {
			listed = &m
		}
		return e.Problem
	})
	if err == nil && listed != nil {
		return &EtcdError{fmt.Errorf("%s has not left etcd, so its host must not be reset: plan again, its removal comes first", memberName(*listed))}
	}
	return err
}

// awaitEtcd asks etcd until nothing is wrong.
func (r *Run) awaitEtcd(ctx context.Context, via *etcd.Access, what string, wrong func(observed.Etcd) string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	for {
		problem := r.askEtcd(ctx, via, wrong)
		if problem == "" {
			return nil
		}
		if err := r.pause(ctx, retryEvery); err != nil {
			return &EtcdError{fmt.Errorf("gave up after %s waiting for %s: %s; kubeone status shows its members", etcdTimeout, what, problem)}
		}
	}
}

func (r *Run) askEtcd(ctx context.Context, via *etcd.Access, wrong func(observed.Etcd) string) string {
	client, err := r.Connect.etcd(ctx, via)
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
