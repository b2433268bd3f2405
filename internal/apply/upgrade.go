package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/etcd"
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
	d := cmp.Or(s.Intent.Drain, &plan.Drain{})
	if d.Upgrade { // of a member that leaves, its own step asks
		if err := r.mayStop(ctx, s); err != nil {
			return err
		}
	}
	opts := drain.Options{
		Mark:    r.RunID,
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds, Force: d.OnTimeout == plan.ForceOnTimeout,
		Evicted: func(pod string) {
			r.emit(Event{Type: StepOutput, Step: s.ID, Host: r.name(s.Host), Line: "evicted " + pod})
		},
	}
	err := client.Drain(ctx, s.Intent.NodeName, opts)
	if err == nil || errors.Is(context.Cause(ctx), ErrLockLost) {
		return err // and whoever has the lock now decides about the node
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
	defer cancel()
	if again := client.Reopen(ctx, s.Intent.NodeName); again != nil {
		return errors.Join(err, again)
	}
	if blocked := (*drain.BlockedError)(nil); !errors.As(err, &blocked) {
		return fmt.Errorf("%w; the node is open again: apply again", err)
	}
	return fmt.Errorf("%w; the node is open again. Make room for its pods or change their budgets and apply again, or see upgrade.drain in the manifest", err)
}

// openAgain opens the nodes that were drained for what then never began.
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

// reopen waits until the node is Ready in the wanted version, and after the turn of a control-plane host until all voters of
// etcd are healthy and controllers lead, and lets pods onto it again. One that an earlier run left closed does not wait for other hosts' members.
func (r *Run) reopen(ctx context.Context, client API, s plan.Step) error {
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version); err != nil {
		return err
	}
	if s.Intent.Role == desired.ControlPlane && !s.Intent.Resume {
		if err := r.awaitEtcd(ctx, r.Etcd, "every voter of etcd healthy", allHealthy); err != nil {
			return err
		}
		if err := client.WaitLeading(ctx); err != nil {
			return err
		}
	}
	return client.Reopen(ctx, s.Intent.NodeName)
}

// allHealthy names a voter that is not healthy. A learner has no vote, and may stay one as long as its own host is away.
func allHealthy(e observed.Etcd) string {
	for _, m := range e.Members {
		if !m.Learner && m.Healthy != observed.Yes {
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

// mayRun asks etcd, as it is now, whether a step may run on its host: what stops a member needs the others' quorum, and what
// wipes one needs that it has left. Draining, uploads and lost connections took their time since the last look.
func (r *Run) mayRun(ctx context.Context, s plan.Step) error {
	switch {
	case s.Intent.Kind == plan.UpgradeControlPlane, s.Intent.Kind == plan.Rewrite && r.stopsVoter(s):
		return r.mayStop(ctx, s)
	case s.Intent.Kind == plan.ResetHost && s.Intent.Confirm:
		return r.hasLeft(ctx, s)
	}
	return nil
}

// stopsVoter reports whether what the step writes again restarts a member that was well, as the plan found it, in an etcd with
// a quorum. Without one nothing is left to lose.
func (r *Run) stopsVoter(s plan.Step) bool {
	was := r.World.Etcd
	m, found := r.memberOn(was, s)
	return slices.Contains(s.Intent.Parts, condition.PartCertificates) && quorum.Count(was.Members).Holds() && found && m.Healthy == observed.Yes
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
