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

// RunOptions say how a proposal is carried out.
type RunOptions struct {
	RunID       string            // in locks, events and the history; "" makes one
	ForceUnlock bool              // take the lock over from another run
	Emit        func(apply.Event) // as Config.Record, of this run only
	Stop        <-chan struct{}   // closed: finish the running steps and begin no other
	// Waiting is called after the run, before each further proposal while something is pending, for SettleTimeout at
	// most. Nil disables the callback.
	Waiting func(Proposal, []Pending)
	// Lease is the caller's own, held, and released by the caller, who elects a leader itself; nil: a run about the
	// cluster takes the cluster's.
	Lease locks.Lease
}

// CarryOut carries out a proposal that somebody has approved: the host keys that it lists are recorded, what it
// uploads is verified, the locks are taken, and it is proposed again. Only if it is still the same, its plan is
// run; otherwise the error is ErrWorldChanged, and nothing was changed but for the host keys. One that must not be
// carried out is refused with what Proposal.Refusal says.
//
// It returns the last proposal that it made. Without an error that is one of after the run: of an Apply for Apply,
// Recover and the Replace of a host that answers, so that it Matches if the cluster is now as it is wanted, and of
// the same request for the others, so that its plan has no steps if nothing is left to do. After Snapshots it is
// the one that was carried out.
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
		if err := e.rememberCA(""); err != nil {
			return s.now, err
		}
	}
	release() // looking takes nobody's place
	if staysBare(approved.Request) {
		if err := e.removeWorkDirs(ctx, s.now, s.run.RunID); err != nil {
			return s.now, err
		}
	}
	return e.proposeAfter(ctx, approved, s.now, o.Waiting)
}

// session is a proposal that is being carried out: what may be run, and the locks under which it may.
type session struct {
	now   Proposal // what is run
	run   *apply.Run
	locks *locks.Set
}

// lockAndConfirm is all that comes before the first step. Callers release the locks of a session without an error.
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
	if s.locks, err = e.takeLocks(ctx, approved, scope, leaseOf(approved), o); err != nil {
		return s, err
	}
	if s.now, err = e.proposeAgain(ctx, approved); err != nil {
		s.locks.Release(ctx)
		return s, err
	}
	if slices.ContainsFunc(s.now.Plan.Steps, func(s plan.Step) bool { return s.Intent.Kind == step.Init }) {
		if err := e.rememberCA(""); err != nil { // the new cluster makes a CA of its own
			s.locks.Release(ctx)
			return s, err
		}
	}
	s.run = e.runOf(s.now, s.locks, o)
	return s, nil
}

// leaseOf is how the Lease is reached that guards what is proposed; nil where none does.
func leaseOf(p Proposal) *cluster.Access {
	if _, recovers := p.Request.(Recover); recovers {
		return nil // what may still answer is not the cluster that will be
	}
	return leaseVia(p.Observed)
}

// ApproveKeys records the host keys that the plan lists as first contacts, and no other. CarryOut does so itself.
func (e *Engine) ApproveKeys(p Proposal) error {
	var contacts []host.FirstContact
	seen := map[string]bool{} // by address: hosts share bastions
	for id, listed := range p.Plan.FirstContacts {
		h, ok := e.HostOf(p, id).(host.FirstContacter)
		if !ok || e.cfg.Approver == nil {
			return fmt.Errorf("engine: nobody is there to record the key of host %s", id)
		}
		met := h.FirstContacts()
		if len(met) > 0 && host.Fingerprints(met) != listed {
			return ErrWorldChanged
		}
		for _, c := range met {
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

// proposeAgain proposes the same once more, and is an error if it is not the same any more.
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

// runOf prepares the walk through the plan.
func (e *Engine) runOf(p Proposal, held *locks.Set, o RunOptions) *apply.Run {
	world := p.Observed.World
	r := &apply.Run{
		Plan: p.Plan, Want: p.Want, World: world, Hosts: e.reachedHosts(p), Unreachable: e.unreachableHosts(p),
		Scripts: p.Scripts,
		Blobs:   e.cfg.Releases, FallbackAPI: p.Observed.Access, Etcd: p.Observed.Etcd,
		Credentials: e.cfg.Credentials, Connect: e.cfg.Connect, CheckLock: held.Check,
		Addons: e.addons, Manifest: e.cfg.Manifest, Lock: held.Hosts, RunID: o.RunID, Holder: e.cfg.Holder,
		Exclusive: held.Scope.Cluster, Parallel: e.cfg.Parallel, Files: e.cfg.Files, RunHook: e.cfg.RunHook,
		Emit: func(ev apply.Event) { e.emitEvent(o, ev) }, Now: e.cfg.Now,
	}
	recovery, recovers := p.Request.(Recover)
	if recovers {
		r.Copy = &recovery.Content
		r.World.API.Reached = observed.No // what still answers there is not the cluster that will be
	}
	if r.World.API.Reached == observed.Yes {
		r.Access = p.Observed.Access
	}
	return r
}

// emitEvent tells of an event whoever wants to know.
func (e *Engine) emitEvent(o RunOptions, event apply.Event) {
	for _, tell := range []func(apply.Event){e.cfg.Record, o.Emit} {
		if tell != nil {
			tell(event)
		}
	}
}

// reachedHosts are the hosts that answered, by ID.
func (e *Engine) reachedHosts(p Proposal) map[string]host.Host {
	out := map[string]host.Host{}
	for id, h := range p.Observed.World.Hosts {
		if h.Reach == observed.Reached {
			out[id] = e.HostOf(p, id)
		}
	}
	return out
}

// unreachableHosts are the hosts that did not answer and of which a step wants to be sure that they are dead.
func (e *Engine) unreachableHosts(p Proposal) map[string]host.Host {
	out, hosts := map[string]host.Host{}, p.Observed.World.Hosts
	for _, s := range p.Plan.Steps {
		if peer := s.Intent.ConfirmDead(); peer != "" && hosts[peer].Reach != observed.Reached {
			out[peer] = e.HostOf(p, peer)
		}
	}
	return out
}

// staysBare reports whether hosts that are reset stay bare, so that nothing of ours is to be left there.
func staysBare(r Request) bool {
	switch r := r.(type) {
	case Reset, Remove:
		return true
	case Worker:
		return r.Gone
	}
	return false
}

// removeWorkDirs removes our own working directory from the hosts that were reset. It goes last: until here it held the
// lock and the step's result. Another run may have the lock since that was given back; its directory stays.
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

// proposeAfter proposes what follows the run, until nothing is pending.
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

// requestAfter returns the request that shows what a run has reached; nil for none.
func requestAfter(done Request) Request {
	switch r := done.(type) {
	case Apply:
		r.Options = r.After(fsm.Upgrade, fsm.Encrypt)
		return r
	case Recover:
		return Apply{}
	case Replace:
		if !r.Gone {
			return Apply{}
		}
	case RenewCertificates:
		return RenewCertificates{} // what was renewed once is new
	case RotateCA:
		r.Anew = false // once
		return r
	case Snapshots:
		return nil
	}
	return done
}

// removesHost reports whether the request takes hosts out of a cluster, whose pods then have to start elsewhere.
func removesHost(r Request) bool {
	switch r := r.(type) {
	case Remove:
		return true
	case Replace:
		return r.Gone
	case Reset:
		return len(r.Hosts) > 0
	}
	return false
}

// Await waits for the steps of earlier runs that were running when the proposal was made, for all at once and for
// apply.StepTimeout at most, whatever a host says. A host that joins in one of
// them gets its certificate meanwhile, if the token of that run was for it.
func (e *Engine) Await(ctx context.Context, p Proposal) error {
	r := e.runOf(p, &locks.Set{}, RunOptions{})
	r.Emit = func(apply.Event) {} // it is no run that anybody follows
	defer r.Approve()()           //nolint:contextcheck // what it begins ends with this
	group, ctx := errgroup.WithContext(ctx)
	for id := range p.RunningSteps() {
		group.Go(func() error { return apply.Await(ctx, e.HostOf(p, id)) })
	}
	return group.Wait()
}
