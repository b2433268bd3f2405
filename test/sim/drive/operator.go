package drive

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// Result is the outcome of a run.
type Result string

// The results.
const (
	Unended   Result = ""
	Matches   Result = "the cluster is as wanted"
	Refused   Result = "refused" // the route is error
	Blocked   Result = "blocked" // the plan cannot be carried out
	NeedsHelp Result = "needs a person"
	Held      Result = "held"          // another operator has the lock
	Changed   Result = "world changed" // the world has changed since the plan was approved
	Failed    Result = "failed"        // a step failed
	Again     Result = "done, and something remains"
)

// look is one observation of the world with its decision and plan.
type look struct {
	plan  plan.Plan
	first decide.Decision
	is    observed.World
	world int // version of the world; 0 if probing took time and saw several
	// want is the manifest as it is carried out: its hosts at the addresses where they were found, the endpoint that is
	// reachable now, and the names to keep.
	want desired.Cluster
	// who maps machines to the hosts of the manifest.
	who identity.Result
	// refused is the error of a request that cannot be planned, otherwise nil.
	refused error
}

// operator is one run of a command, in the engine's order: probe, approve, lock, probe again, compare, carry out, probe
// until the world matches. It uses the engine's locks and the real apply.Run.
type operator struct {
	// Set at the start.
	sim     *Simulation
	number  int
	force   bool
	file    *file   // the manifest at the start
	request request // the request
	alone   string  // ID of a single worker; empty for the cluster
	// machine is a controller's Machine at the start of the run, and follows the same Machine now. Both are nil for the
	// cluster.
	machine, follows *machine
	stop             chan struct{} // closed when a person presses Ctrl-C
	cancel           context.CancelFunc

	// Read and change the rest with the world locked.
	run       string
	result    Result
	plan      look
	steps     []plan.Step // the steps to carry out
	wake      int         // suspended until this moment
	dead      bool        // its program was killed
	stopped   bool
	leased    bool // it has taken the Lease
	looksLast bool // its plan has been carried out
	lookBegan int64
}

// runCommand runs the operator's command.
func (o *operator) runCommand(ctx context.Context) {
	result := o.carryOut(ctx)
	for again := 0; result == Changed && again < 2; again++ {
		o.sim.actAs(o, func() { o.run, o.leased = o.run+"'", false }) // another plan is another run
		result = o.carryOut(ctx)
	}
	o.sim.actAs(o, func() {
		if o.dead {
			return
		}
		o.result = result
		o.sim.traceEvent("%s: %s", o.run, result)
		o.dead = true // the program and its connections end
		o.endConnections()
	})
}

// endConnections ends the operator's connections: the hosts then release its locks.
func (o *operator) endConnections() {
	for _, h := range o.sim.World.Hosts {
		if h.Reached() {
			o.sim.World.Unlock(h, o.run)
		}
	}
}

// takeLook observes the world. It takes time while hosts answer early or late.
func (o *operator) takeLook(ctx context.Context, seen func() look) (look, error) {
	if err := o.takeTime(ctx, "look"); err != nil && !errors.Is(err, errBroken) {
		return look{}, err
	}
	var l look
	var before *observed.World
	seconds := 0
	o.sim.actAs(o, func() {
		o.lookBegan = o.sim.World.Now
		if len(o.sim.answering) == 0 {
			l = seen()
			return
		}
		is := o.sim.World.Observe()
		before, seconds = &is, 1+o.sim.throwDice(3, longestLook)
	})
	if before == nil {
		return l, nil
	}
	if err := sleepFor(ctx, time.Duration(seconds)*time.Second); err != nil {
		return look{}, err
	}
	o.sim.actAs(o, func() {
		o.sim.before = before
		l = seen()
		o.sim.before = nil
	})
	return l, nil
}

// observeNow returns the operator's current observation and plan.
func (o *operator) observeNow() look {
	if o.machine != nil {
		return o.sim.lookAtMachine(o.machine)
	}
	if o.alone == "" && o.request.command == applyAll {
		return o.sim.lookFor(o.file)
	}
	l := o.lookForRequest()
	if o.alone == "" {
		return l
	}
	l.plan = aloneWith(l.plan, l.who.IDs.Of(o.alone))
	return l
}

// aloneWith returns the plan without the record of the manifest, which a run on one worker must not write.
func aloneWith(p plan.Plan, id string) plan.Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool {
		return s.Intent.Kind == step.SaveRecord
	})
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Host == id }) {
		p.Steps = nil
	}
	return p
}

// lookUntil observes until ok accepts the result, or for the limit. Zero means no limit.
func (o *operator) lookUntil(ctx context.Context, limit time.Duration, seen func() look, ok func(look) bool) (
	look, error) {
	for began := time.Now(); ; {
		l, err := o.takeLook(ctx, seen)
		if err != nil {
			return l, err
		}
		over := false
		o.sim.actAs(o, func() { over = ok(l) })
		if over || limit != 0 && time.Since(began) > limit {
			return l, nil
		}
		if err := sleepFor(ctx, engine.SettleEvery); err != nil {
			return l, err
		}
	}
}

// emptyLook returns a look without a plan.
func (*operator) emptyLook() look { return look{} }

// isBusy reports whether to wait for a running step of an earlier run.
func (o *operator) isBusy() bool {
	return slices.ContainsFunc(o.sim.World.Hosts, func(h *world.Host) bool {
		only := o.alone == "" && o.machine == nil || o.alone == h.ID || o.isFor(h)
		return h.Reached() && !h.Outside && h.Run.Unit != nil && only
	})
}

// decideRoute observes until no step of an earlier run runs and no member is starting. It returns Unended if there is
// something to do.
func (o *operator) decideRoute(ctx context.Context) (look, Result) {
	if _, err := o.lookUntil(ctx, 0, o.emptyLook, func(look) bool { return !o.isBusy() }); err != nil {
		return look{}, Failed
	}
	l, err := o.lookUntil(ctx, engine.SettleTimeout, o.observeNow, func(l look) bool {
		waits := comingUp(l) || l.isMatch() && o.sim.lacksComponents(l)
		return o.alone != "" || o.machine != nil || !o.request.isApply() || !waits
	})
	if err != nil {
		return look{}, Failed
	}
	result := Unended
	o.sim.actAs(o, func() {
		o.plan = l
		if o.sim.Trace != nil {
			o.sim.traceEvent("%s decides %s", o.run, l.explainDecision())
		}
		result = o.judgeLook(l)
	})
	return l, result
}

func (o *operator) judgeLook(l look) Result {
	switch {
	case l.refused != nil:
		return Refused
	case o.machine != nil && l.first.Route != fsm.Nothing && len(l.plan.Steps) == 0:
		return Again // the caller retries
	case !o.request.isApply() && len(l.plan.Steps) == 0:
		return Again
	case !o.request.isApply():
		return Unended
	case l.first.Route == fsm.Error:
		return Refused
	case l.plan.Blocked != "":
		return Blocked
	case l.plan.Empty():
		return o.endMatched(l)
	case len(l.plan.Steps) == 0:
		return NeedsHelp
	}
	return Unended
}

func comingUp(l look) bool {
	for _, a := range l.first.Hosts {
		if a.Condition == condition.Unready || a.Condition == condition.Broken {
			return true
		}
	}
	return false
}

// carryOut does what the engine does for one proposal.
func (o *operator) carryOut(ctx context.Context) Result {
	l, result := o.decideRoute(ctx)
	if result != Unended {
		return result
	}
	o.sim.actAs(o, func() { o.approvePlan(l) })
	scope := plan.LockScope(l.plan, l.want, l.is)
	held, err := o.takeLocks(ctx, l, scope)
	if err != nil {
		return o.notLocked(err)
	}
	release := sync.OnceFunc(func() { held.Release(ctx) })
	defer release()
	now, err := o.takeLook(ctx, o.observeNow)
	if err != nil {
		return Failed
	}
	if result := o.comparePlans(l, now); result != Unended {
		return result
	}
	o.sim.actAs(o, func() { o.beginPlan(now) })
	r := o.runOf(now, held)
	err = held.Guard(ctx, func(ctx context.Context) error { return r.Do(ctx, o.stop) })
	if err != nil {
		o.noteFailure(err)
		return Failed
	}
	release()
	return o.finishRun(ctx, now)
}

func (o *operator) noteFailure(err error) {
	o.sim.actAs(o, func() {
		first, _, _ := strings.Cut(err.Error(), "\n")
		o.sim.traceEvent("%s fails: %s", o.run, first)
	})
}

// approvePlan approves exactly the plan that was shown.
func (o *operator) approvePlan(l look) {
	o.sim.Checker.Approve(o.run, l.plan, o.grantOf())
	o.sim.World.Ordered(o.run, world.Order{
		Endpoint: l.want.Endpoint, Epoch: plan.Epoch(l.plan, l.want, l.is),
		Machine: o.machineUID(), Config: SettingsOf(l.want),
		Encrypted: l.want.EncryptSecrets, Owed: owedHooks(l.plan),
	})
}

// takeLocks takes the run's locks.
func (o *operator) takeLocks(ctx context.Context, l look, scope plan.Scope) (*locks.Set, error) {
	hosts := map[string]host.Host{}
	o.sim.actAs(o, func() {
		for _, h := range o.sim.World.Hosts {
			blind := o.sim.Off == AbsentHosts && !h.Reached()
			if !blind && slices.Contains(scope.Hosts, h.ID) {
				hosts[h.ID] = &remote{o: o, id: h.ID, name: h.Name}
			}
		}
	})
	var via *cluster.Access
	// In a recovery, the API that still answers is not that of the future cluster.
	if l.is.API.Reached == observed.Yes && o.request.command != recoverCluster {
		via = &cluster.Access{Kubeconfig: []byte(kubeconfig)}
	}
	return locks.Take(ctx, hosts, scope, via,
		locks.Options{Holder: o.run, RunID: o.run, Force: o.force, TakeLease: o.takeLease})
}

// notLocked returns the result of a run that failed to lock.
func (o *operator) notLocked(err error) Result {
	o.noteFailure(err)
	var host *locks.HeldError
	var lease *leaselock.HeldError
	if errors.As(err, &host) || errors.As(err, &lease) {
		return Held
	}
	return Failed
}

// comparePlans returns the result of a run whose plan has changed.
func (o *operator) comparePlans(before, now look) Result {
	switch {
	case o.sim.Off == NoCompare && now.refused == nil:
		return Unended
	case now.refused != nil:
		return Refused
	case plan.ControlPlaneBusy(now.want, now.is), // no current plan can predict a host's state after its step
		now.plan.Digest() != before.plan.Digest():
		return Changed
	}
	return Unended
}

func (o *operator) beginPlan(now look) {
	o.plan = now
	o.steps = o.sim.alterPlan(now.plan).Steps
	o.sim.Checker.Begin(o.run, o.lookBegan)
}

// findStep returns the step with that ID.
func (o *operator) findStep(id string) plan.Step {
	for _, s := range o.steps {
		if s.ID == id {
			return s
		}
	}
	return plan.Step{}
}

func (o *operator) authorOf(s plan.Step) world.Author {
	return world.Author{Run: o.run, Step: s.ID, Host: s.Host, Kind: s.Intent.Kind}
}

// runOf returns the execution of the plan.
func (o *operator) runOf(l look, held *locks.Set) *apply.Run {
	carried := l.plan
	carried.Steps = o.steps
	r := &apply.Run{
		Plan: carried, Want: l.want, World: l.is, Hosts: map[string]host.Host{}, Unreachable: map[string]host.Host{},
		Blobs: blobs{}, Scripts: map[string]string{}, Etcd: &etcd.Access{}, Lock: held.Hosts, CheckLock: held.Check,
		Exclusive: held.Scope.Cluster, RunID: o.run, Holder: o.run, Now: time.Now, Emit: o.handleEvent,
		RunHook: func(context.Context, apply.Hook, io.Writer) error { return nil },
		Connect: apply.Connectors{
			API:  func(cluster.Access) (apply.API, error) { return &api{o}, nil },
			Etcd: func(context.Context, etcd.Access) (apply.Etcd, error) { return &members{o}, nil },
		},
	}
	for id, seen := range l.is.Hosts {
		h := o.sim.World.Host(id) // the set of hosts is constant
		switch {
		case h == nil:
		case seen.Reach == observed.Reached:
			r.Hosts[id] = &remote{o: o, id: h.ID, name: id}
		default:
			r.Unreachable[id] = &remote{o: o, id: h.ID, name: id}
		}
	}
	for _, s := range o.steps { // with a guard off, some hosts may be unreachable
		if s.Intent.Kind.OnHost() && r.Hosts[s.Host] == nil && o.sim.World.Host(s.Host) != nil {
			r.Hosts[s.Host] = &remote{o: o, id: s.Host, name: s.Host}
		}
	}
	r.Addons = o.file.allAddons()
	if o.request.command == recoverCluster {
		r.Copy, r.World.API.Reached = &apply.Copy{}, observed.No
	}
	if r.World.API.Reached == observed.Yes {
		r.Access = &cluster.Access{Kubeconfig: []byte(kubeconfig)}
	}
	return r
}

// handleEvent handles the events of apply.
func (o *operator) handleEvent(e apply.Event) {
	if o.sim.Trace == nil || e.Type != apply.StepFailed {
		return
	}
	o.sim.actAs(o, func() {
		first, _, _ := strings.Cut(e.Error, "\n")
		o.sim.traceEvent("%s %s fails: %s", o.run, e.Step, first)
	})
}

// blobs are uploads without content.
type blobs struct{}

// Blob is empty.
func (blobs) Blob(string) (io.Reader, int64, error) { return strings.NewReader(""), 0, nil }

// finishRun continues after a plan has been carried out.
func (o *operator) finishRun(ctx context.Context, l look) Result {
	switch {
	case o.alone != "":
		return Matches
	case o.machine != nil && o.machine.gone, !o.request.isApply() && o.request.forgetsHosts():
		return o.forgetHosts(ctx, l)
	case o.machine != nil:
		return Again // and probes again
	case o.request.isApply() && !l.plan.Complete():
		return Again
	}
	o.sim.actAs(o, func() { o.looksLast = true })
	last, err := o.lookUntil(ctx, engine.SettleTimeout, func() look { return o.sim.lookFor(o.file) },
		func(last look) bool { return last.isMatch() && !o.sim.lacksComponents(last) })
	switch {
	case err != nil:
		return Failed
	case !last.isMatch():
		return Again
	}
	o.sim.actAs(o, func() { o.endMatched(last) })
	return Matches
}

// forgetHosts removes the working directories of reset hosts, like the engine.
func (o *operator) forgetHosts(ctx context.Context, l look) Result {
	for _, s := range l.plan.Steps {
		if !s.Intent.Kind.ClearsHost() && s.Intent.Kind != step.Purge {
			continue
		}
		h := o.sim.World.Host(s.Host)
		if apply.Forget(ctx, &remote{o: o, id: h.ID, name: h.ID}, o.run) != nil {
			return Failed
		}
	}
	return Again
}

// isMatch reports whether nothing visible is left to do.
func (l look) isMatch() bool { return l.plan.Empty() && l.first.Route != fsm.Error }

// lacksComponents reports whether required components do not run.
func (s *Simulation) lacksComponents(l look) bool {
	return s.Off != NoPods && len(decide.NotRunning(l.want.Network, l.is.API)) > 0
}

// endMatched ends a run that reports a match, and checks what does not run nevertheless.
func (o *operator) endMatched(l look) Result {
	dns := slices.ContainsFunc(l.is.API.Pods, func(p observed.Pod) bool {
		return p.App == world.DNSApp && p.Ready == observed.Yes
	})
	named := o.sim.Off != NoPods && slices.ContainsFunc(l.plan.Unlike, func(what string) bool {
		return strings.HasPrefix(what, "cluster DNS ")
	})
	if l.is.API.Reached == observed.Yes && o.machine == nil && dns == named {
		o.sim.Checker.Break(safety.Told, "%s: cluster DNS runs: %t; named as what does not: %t", o.run, dns, named)
	}
	return Matches
}
