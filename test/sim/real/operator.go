package real

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/test/sim/drive"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// Operator is one operator with the real apply.
type Operator struct {
	W      *World
	Name   string
	Want   desired.Cluster
	Config map[string]map[string]string
	Addons map[string]string
	Force  bool
	// Arrange changes the plan that is carried out; nil leaves it.
	Arrange func(plan.Plan) plan.Plan
	// Events is told what apply tells; nil tells nobody.
	Events func(run string, e apply.Event)
}

// The ends of a run that are no failure of a step.
var (
	ErrNothing = errors.New("there is nothing to do")
	ErrPerson  = errors.New("the operator must act")
	ErrChanged = errors.New("the world changed since the plan was approved")
)

// look is what is seen, and what is planned for it.
func (o *Operator) look() (p plan.Plan, first decide.Decision, is observed.World) {
	o.W.do(func() { is = o.W.truth.Observe() })
	in := o.input(is)
	p, decisions := plan.Build(plan.Input{Decide: in})
	return p, decisions[0], is
}

// input is what is decided upon.
func (o *Operator) input(is observed.World) decide.Input {
	return decide.Settle(decide.Input{Want: o.Want, Is: is, Config: o.Config, Addons: o.Addons}, false)
}

// lookUntil looks until ok says so, for so long at most.
func (o *Operator) lookUntil(ctx context.Context, limit time.Duration,
	ok func(plan.Plan, decide.Decision, observed.World) bool) (plan.Plan, decide.Decision, observed.World) {
	for end := time.Now().Add(limit); ; {
		p, first, is := o.look()
		if ok(p, first, is) || time.Now().After(end) || sleep(ctx, engine.SettleEvery) != nil {
			return p, first, is
		}
	}
}

// idle reports whether no step runs.
func idle(_ plan.Plan, _ decide.Decision, is observed.World) bool {
	for _, h := range is.Hosts {
		if h.Step != nil {
			return false
		}
	}
	return true
}

// settled reports whether no member is coming up and, where nothing is to be done, no component.
func (o *Operator) settled(p plan.Plan, first decide.Decision, is observed.World) bool {
	for _, a := range first.Hosts {
		if a.Condition == condition.Unready || a.Condition == condition.Broken {
			return false
		}
	}
	return !matches(p, first) || o.runs(is)
}

func matches(p plan.Plan, first decide.Decision) bool { return p.Empty() && first.Route != fsm.Error }

// runs reports whether no component is known not to run.
func (o *Operator) runs(is observed.World) bool {
	return len(decide.NotRunning(o.Want.Network, is.API)) == 0
}

// Apply does what the engine does for `kubeone apply --auto-approve`: look, approve, lock, look again, compare,
// run, look.
func (o *Operator) Apply(ctx context.Context, run string) error {
	o.lookUntil(ctx, apply.StepTimeout, idle)
	p, first, is := o.lookUntil(ctx, engine.SettleTimeout, o.settled)
	switch {
	case matches(p, first):
		return ErrNothing
	case first.Route == fsm.Error, p.Blocked != "", len(p.Steps) == 0:
		return ErrPerson
	}
	o.W.do(func() {
		o.W.plans[run] = p
		o.W.truth.Ordered(run, world.Order{
			Endpoint: o.input(is).Want.Endpoint, Epoch: plan.Epoch(p, o.Want, is), Config: drive.SettingsOf(o.Want),
		})
		o.W.check.Approve(run, p, safety.Grant{})
		o.W.check.Begin(run, o.W.truth.Now)
	})
	hosts := o.hosts(is)
	scope := plan.LockScope(p, o.Want, is)
	lock, err := apply.TakeLock(ctx, o.claimed(scope, hosts),
		apply.Claim{Holder: o.Name, Run: run, Force: o.Force, Dispensable: scope.Dispensable()})
	if err != nil {
		return err
	}
	defer lock.Release()
	l := &lease{o: o, run: run, scope: scope, lock: lock, lost: make(chan struct{})}
	if is.API.Reached == observed.Yes {
		if err := l.take(ctx); err != nil {
			return err
		}
	}
	defer l.release()
	if now, _, _ := o.look(); now.Digest() != p.Digest() {
		return ErrChanged
	}
	if o.Arrange != nil {
		p = o.Arrange(p)
	}
	if err := l.guarded(ctx, func(ctx context.Context) error { return o.run(ctx, run, p, is, hosts, l) }); err != nil {
		return err
	}
	o.lookUntil(ctx, engine.SettleTimeout, func(p plan.Plan, first decide.Decision, is observed.World) bool {
		return matches(p, first) && o.runs(is)
	})
	return nil
}

func (o *Operator) hosts(is observed.World) map[string]host.Host {
	out := map[string]host.Host{}
	for _, h := range o.Want.Hosts() {
		if is.Hosts[h.ID].Reach == observed.Reached {
			out[h.ID] = &machine{w: o.W, operator: o.Name, id: h.ID, name: h.Hostname}
		}
	}
	return out
}

// unreachable are the hosts that did not answer.
func (o *Operator) unreachable(is observed.World) map[string]host.Host {
	out := map[string]host.Host{}
	for _, h := range o.Want.Hosts() {
		if is.Hosts[h.ID].Reach != observed.Reached {
			out[h.ID] = &machine{w: o.W, operator: o.Name, id: h.ID, name: h.Hostname}
		}
	}
	return out
}

// blobs are uploads without content.
type blobs struct{}

// Blob is empty.
func (blobs) Blob(string) (io.Reader, int64, error) { return strings.NewReader(""), 0, nil }

// claimed are the hosts whose lock a run takes.
func (o *Operator) claimed(s plan.Scope, hosts map[string]host.Host) map[string]host.Host {
	out := map[string]host.Host{}
	for _, id := range s.Hosts {
		out[id] = hosts[id]
	}
	return out
}

func (o *Operator) run(ctx context.Context, run string, p plan.Plan, is observed.World, hosts map[string]host.Host,
	l *lease) error {
	r := &apply.Run{
		Plan: p, Want: o.Want, World: is, Hosts: hosts, Unreachable: o.unreachable(is), Blobs: blobs{},
		Lock: l.lock, RunID: run, Holder: o.Name, Now: time.Now,
		Scripts: map[string]string{}, Etcd: &etcd.Access{}, CheckLock: l.check,
		Connect: apply.Connectors{
			API:  func(cluster.Access) (apply.API, error) { return &api{o.W, o.Name, run}, nil },
			Etcd: func(context.Context, etcd.Access) (apply.Etcd, error) { return &members{o.W, o.Name, run}, nil },
		},
		Emit: func(e apply.Event) {
			if o.Events != nil {
				o.Events(run, e)
			}
		},
	}
	for name, digest := range o.Addons {
		r.Addons = append(r.Addons, addons.Addon{Name: name, Digest: digest})
	}
	if is.API.Reached == observed.Yes {
		r.Access = &cluster.Access{Kubeconfig: []byte(kubeconfig)}
	}
	return r.Do(ctx, o.W.stop)
}
