package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// RunOptions are the options for carrying out a proposal.
type RunOptions struct {
	RunID       string            // in locks, events and the history; "": a new one
	ForceUnlock bool              // take the lock from another run
	Emit        func(apply.Event) // like Config.Record, for this run only
	Stop        <-chan struct{}   // once closed, running steps finish and no others begin
	// Waiting is called before each further proposal after the run. The engine proposes again while something is
	// pending, for at most SettleTimeout. Nil disables the callback.
	Waiting func(Proposal, []Pending)
	// Lease is for callers that run a leader election, which hold and release this Lease themselves. If it is nil, a
	// run for the cluster takes the cluster Lease.
	Lease locks.Lease
}

// CarryOut carries out an approved proposal. It records the host keys that the proposal lists, verifies the uploads,
// takes the locks, and proposes again. If the new proposal differs, it returns ErrWorldChanged without running the
// plan; only host keys were recorded then. If the proposal must not be carried out, it returns the error of
// Proposal.Refusal.
//
// CarryOut returns its last proposal. After Apply, Recover, and Replace of a host that answers, that is a proposal for
// an Apply, which Matches if the cluster is now in its desired state. After Snapshots it is the proposal that was
// carried out. After other requests it is a proposal for the same request, without steps if there is nothing left to
// do.
func (e *Engine) CarryOut(ctx context.Context, approved Proposal, o RunOptions) (Proposal, error) {
	s, err := e.lockAndConfirm(ctx, approved, o)
	if err != nil {
		return s.now, err
	}
	release := sync.OnceFunc(func() { s.locks.Release(ctx) })
	defer release()
	err = s.locks.Guard(ctx, func(ctx context.Context) error { return s.run.Do(ctx, o.Stop) })
	if err != nil {
		return s.now, err
	}
	if reset, ends := approved.Request.(Reset); ends && len(reset.Hosts) == 0 {
		if err := e.saveCA(""); err != nil {
			return s.now, err
		}
	}
	release() // observing needs no lock
	if leavesHostsEmpty(approved.Request) {
		if err := e.removeWorkDirs(ctx, s.now, s.run.RunID); err != nil {
			return s.now, err
		}
	}
	return e.proposeAfter(ctx, approved, s.now, o.Waiting)
}

// session is a proposal that is being carried out: its run, and the locks that protect it.
type session struct {
	now   Proposal // the proposal to run
	run   *apply.Run
	locks *locks.Set
}

// lockAndConfirm prepares a run: it records host keys, takes the locks, and confirms that the plan is unchanged. On
// success the caller must release the locks of the session.
func (e *Engine) lockAndConfirm(ctx context.Context, approved Proposal, o RunOptions) (session, error) {
	s := session{now: approved}
	if err := approved.Refusal(); err != nil {
		return s, err
	}
	if approved.Plan.Installs() {
		if err := e.cfg.Releases.Verify(ctx); err != nil {
			return s, &ConfigError{&ReleaseError{err}}
		}
	}
	if err := e.ApproveKeys(approved); err != nil {
		return s, err
	}
	if o.RunID == "" {
		o.RunID = e.NewRunID()
	}
	var err error
	scope := plan.LockScope(approved.Plan, approved.Want, approved.Observed.World)
	if s.locks, err = e.takeLocks(ctx, approved, scope, leaseAccess(approved), o); err != nil {
		return s, err
	}
	if s.now, err = e.proposeAgain(ctx, approved); err != nil {
		s.locks.Release(ctx)
		return s, err
	}
	if slices.ContainsFunc(s.now.Plan.Steps, func(s plan.Step) bool { return s.Intent.Kind == step.Init }) {
		if err := e.saveCA(""); err != nil { // the new cluster will have another CA
			s.locks.Release(ctx)
			return s, err
		}
	}
	s.run = e.newRun(s.now, s.locks, o)
	return s, nil
}

// leaseAccess returns access to the API with the Lease to take, or nil if no Lease is needed or no API answers.
func leaseAccess(p Proposal) *cluster.Access {
	if _, recovers := p.Request.(Recover); recovers {
		return nil // an API that still answers is not the new cluster
	}
	return leaseVia(p.Observed)
}

// ApproveKeys records the host keys that the plan lists as first contacts, and no others. CarryOut calls it.
func (e *Engine) ApproveKeys(p Proposal) error {
	var contacts []host.FirstContact
	seen := map[string]bool{} // by address: hosts share bastions
	for id, listed := range p.Plan.FirstContacts {
		h, ok := e.HostOf(p, id).(host.FirstContacter)
		if !ok || e.cfg.Approver == nil {
			return fmt.Errorf("engine: no Approver to record the key of host %s", id)
		}
		contacted := h.FirstContacts()
		if len(contacted) > 0 && host.Fingerprints(contacted) != listed {
			return ErrWorldChanged
		}
		for _, c := range contacted {
			if !seen[c.Address] {
				seen[c.Address] = true
				contacts = append(contacts, c)
			}
		}
	}
	if len(contacts) == 0 {
		return nil
	}
	return e.cfg.Approver.Approve(contacts...)
}

// proposeAgain repeats the proposal. It returns an error if the result differs.
func (e *Engine) proposeAgain(ctx context.Context, approved Proposal) (Proposal, error) {
	o, err := e.observeFor(ctx, approved.Request)
	if err != nil {
		return approved, err
	}
	now, err := e.proposeFor(ctx, o, approved.Plan.FirstContacts)
	if err != nil {
		return approved, now.whyChanged(err)
	}
	if err := now.Unresolved(); err != nil {
		return now, err
	}
	if now.Plan.Digest() != approved.Plan.Digest() ||
		plan.ControlPlaneBusy(now.Want, now.Observed.World) {
		return now, ErrWorldChanged
	}
	return now, nil
}

// newRun returns a run of the plan, not started yet.
func (e *Engine) newRun(p Proposal, held *locks.Set, o RunOptions) *apply.Run {
	world := p.Observed.World
	r := &apply.Run{
		Plan: p.Plan, Want: p.Want, World: world, Hosts: e.reachedHosts(p), Unreachable: e.unreachableHosts(p),
		Scripts: p.Scripts,
		Blobs:   e.cfg.Releases, FallbackAPI: p.Observed.Access, Etcd: p.Observed.Etcd,
		Credentials: e.cfg.Credentials, Connect: e.cfg.Connect, CheckLock: held.Check,
		Addons: e.awaitedAddons(p.Want), Releases: e.helmReleases(p.charts), Manifest: e.cfg.Manifest, Lock: held.Hosts,
		RunID: o.RunID, Holder: e.cfg.Holder,
		Exclusive: held.Scope.Cluster, Parallel: e.cfg.Parallel, Files: e.cfg.Files, RunHook: e.cfg.RunHook,
		Emit: func(ev apply.Event) { e.emitEvent(o, ev) }, Now: e.cfg.Now,
	}
	recovery, recovers := p.Request.(Recover)
	if recovers {
		r.Copy = &recovery.Content
		r.World.API.Reached = observed.No // an API that still answers is not the new cluster
	}
	if r.World.API.Reached == observed.Yes {
		r.Access = p.Observed.Access
	}
	return r
}

// emitEvent passes an event to Config.Record and RunOptions.Emit.
func (e *Engine) emitEvent(o RunOptions, event apply.Event) {
	for _, tell := range []func(apply.Event){e.cfg.Record, o.Emit} {
		if tell != nil {
			tell(event)
		}
	}
}

// reachedHosts returns the hosts that answered, by ID.
func (e *Engine) reachedHosts(p Proposal) map[string]host.Host {
	out := map[string]host.Host{}
	for id, h := range p.Observed.World.Hosts {
		if h.Reach == observed.Reached {
			out[id] = e.HostOf(p, id)
		}
	}
	return out
}

// unreachableHosts returns the hosts that did not answer and that steps must confirm dead, by ID.
func (e *Engine) unreachableHosts(p Proposal) map[string]host.Host {
	out, hosts := map[string]host.Host{}, p.Observed.World.Hosts
	for _, s := range p.Plan.Steps {
		if peer := s.Intent.ConfirmDead(); peer != "" && hosts[peer].Reach != observed.Reached {
			out[peer] = e.HostOf(p, peer)
		}
	}
	return out
}

// leavesHostsEmpty reports whether hosts stay empty after the request, so that kubeone must remove all of its files
// from them.
func leavesHostsEmpty(r Request) bool {
	switch r := r.(type) {
	case Reset, Remove:
		return true
	case Worker:
		return r.MachineDeleted
	}
	return false
}

// removeWorkDirs removes our working directory from reset hosts. It runs last, because the directory contains the lock
// and the result of the step. If another run has taken the lock since it was released, the directory stays.
func (e *Engine) removeWorkDirs(ctx context.Context, p Proposal, run string) error {
	for _, s := range p.Plan.Steps {
		if !s.Intent.Kind.ClearsHost() && s.Intent.Kind != step.Purge {
			continue
		}
		if err := apply.Forget(ctx, e.HostOf(p, s.Host), run); err != nil {
			return err
		}
	}
	return nil
}

// proposeAfter proposes the request that shows the result of the run, until nothing is pending.
func (e *Engine) proposeAfter(ctx context.Context, approved, done Proposal, waiting func(Proposal, []Pending)) (
	Proposal, error) {
	request := requestAfter(done.Request)
	if request == nil {
		return done, nil
	}
	if waiting == nil {
		waiting = func(Proposal, []Pending) {}
	}
	return e.proposeUntil(ctx, request, SettleTimeout, func(p Proposal, waited time.Duration) []Pending {
		return p.pendingAfter(approved, waited)
	}, waiting)
}

// requestAfter returns the request whose proposal shows the result of a run, or nil if there is none.
func requestAfter(done Request) Request {
	switch r := done.(type) {
	case Apply:
		r.Options = r.After(fsm.Upgrade, fsm.Encrypt)
		return r
	case Recover:
		return Apply{}
	case Replace:
		if !r.HostGone {
			return Apply{}
		}
	case RenewCertificates:
		return RenewCertificates{} // certificates are renewed only once
	case RotateCA:
		r.Anew = false // start a rotation only once
		return r
	case Snapshots:
		return nil
	}
	return done
}

// removesHost reports whether the request removes hosts from a cluster that continues to run. Their pods must then
// start on other hosts.
func removesHost(r Request) bool {
	switch r := r.(type) {
	case Remove:
		return true
	case Replace:
		return r.HostGone
	case Reset:
		return len(r.Hosts) > 0
	}
	return false
}

// Await waits until all steps of earlier runs that were running at the time of the proposal have ended, for at most
// apply.StepTimeout. Meanwhile it approves the certificate of a joining host if its join token was for that host.
func (e *Engine) Await(ctx context.Context, p Proposal) error {
	r := e.newRun(p, &locks.Set{}, RunOptions{})
	r.Emit = func(apply.Event) {} // this run has no followers
	defer r.Approve()()           //nolint:contextcheck // what it begins ends with this
	group, ctx := errgroup.WithContext(ctx)
	for id := range p.RunningSteps() {
		group.Go(func() error { return apply.Await(ctx, e.HostOf(p, id)) })
	}
	return group.Wait()
}
