package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/decidetest"
)

// A finished recovery observes until all is well. It does not wait for what waiting cannot change: another addon, a
// version, an operator's action.
func TestEngineWaitsOnlyForWhatMayChange(t *testing.T) {
	t.Parallel()
	person := []problem.Instruction{{Host: "192.0.2.21"}}
	for name, c := range map[string]struct {
		route    fsm.Route
		operator []problem.Instruction
		comingUp []string
		ends     bool
	}{
		"an addon is another":              {route: fsm.Resources, ends: true},
		"another version is wanted":        {route: fsm.Upgrade, ends: true},
		"the configuration differs":        {route: fsm.Reconfigure, ends: true},
		"the endpoint moves":               {route: fsm.MoveEndpoint, ends: true},
		"a person must act":                {route: fsm.Instruct, operator: person, ends: true},
		"units may come up":                {route: fsm.Repair},
		"a member may come up":             {route: fsm.Resources, comingUp: []string{"192.0.2.11"}},
		"a member may, and a person would": {route: fsm.Instruct, operator: person, comingUp: []string{"192.0.2.11"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Proposal{
				Decisions: []decide.Decision{{Route: c.route, ComingUp: c.comingUp}},
				Plan:      plan.Plan{Operator: c.operator},
			}
			p.Plan.Steps = []plan.Step{{ID: "x"}}
			if pending := p.pendingAfter(Proposal{Request: Recover{}}, 0); len(pending) == 0 != c.ends {
				t.Errorf("pending: %v", pending)
			}
		})
	}
}

// The proposals after a run, and which one is the last.
func TestTheProposalsAfterARun(t *testing.T) {
	t.Parallel()
	const cp = "192.0.2.11"
	well := Proposal{Decisions: []decide.Decision{{Route: fsm.Nothing}}}
	late := Proposal{Decisions: []decide.Decision{{Route: fsm.Nothing, ComingUp: []string{cp}}}}
	drift := Proposal{
		Plan: plan.Plan{Steps: []plan.Step{{ID: "x"}}}, Decisions: []decide.Decision{{Route: fsm.Reconfigure}},
	}
	repair := Proposal{
		Plan: plan.Plan{Steps: []plan.Step{{ID: "x"}}}, Decisions: []decide.Decision{{Route: fsm.Repair}},
	}
	held := Proposal{Plan: plan.Plan{Blocked: "blocked"}, Decisions: []decide.Decision{{Route: fsm.Nothing}}}
	noDNS := well
	noDNS.Observed.World.API.Reached = observed.Yes
	noDNS.Want.Network.KubeProxy.Skip = true
	again := func(p Proposal, waited time.Duration) look { return look{p, waited, false} }
	last := func(p Proposal, waited time.Duration) look { return look{p, waited, true} }
	for name, c := range map[string]struct {
		run   Request
		next  Request
		looks []look // none: any is the last
	}{
		"an apply, once with force": {
			Apply{Options: decide.Options{ForceUpgrade: true, RotateKey: true, DiscardEdits: true}},
			Apply{Options: decide.Options{DiscardEdits: true}},
			[]look{last(well, 0), again(late, HangTimeout), again(drift, HangTimeout)},
		},
		"a recovery": {
			Recover{On: cp}, Apply{},
			[]look{last(well, 0), again(late, 0), again(repair, HangTimeout), last(drift, 0)},
		},
		"a replacement": {
			Replace{Host: cp}, Apply{},
			[]look{last(well, 0), again(late, HangTimeout), again(drift, 0), last(drift, HangTimeout)},
		},
		"a replacement of who is gone": {
			Replace{Host: cp, HostGone: true}, Replace{Host: cp, HostGone: true},
			[]look{last(well, 0), again(noDNS, HangTimeout), last(drift, 0)},
		},
		"a removal":         {Remove{Host: cp}, Remove{Host: cp}, []look{last(well, 0), again(noDNS, HangTimeout)}},
		"a reset of a host": {Reset{Hosts: []string{cp}}, Reset{Hosts: []string{cp}}, []look{again(noDNS, 0)}},
		"a whole reset":     {Reset{Purge: true}, Reset{Purge: true}, nil},
		"a renewal": {
			RenewCertificates{}, RenewCertificates{}, []look{last(well, 0), again(late, HangTimeout), again(held, 0)},
		},
		"a CA made anew, once": {
			RotateCA{Anew: true}, RotateCA{}, []look{last(well, 0), again(late, HangTimeout), again(held, 0)},
		},
		"a Machine's host": {Worker{MachineDeleted: true}, Worker{MachineDeleted: true}, nil},
		"a snapshot":       {Snapshots{}, nil, nil},
	} {
		if diff := cmp.Diff(c.next, requestAfter(c.run)); diff != "" {
			t.Errorf("after %s: %s", name, diff)
		}
		if len(c.looks) == 0 {
			c.looks = []look{last(well, 0), last(late, 0), last(drift, 0), last(noDNS, 0)}
		}
		for i, l := range c.looks {
			if pending := l.seen.pendingAfter(Proposal{Request: c.run}, l.waited); len(pending) == 0 != l.last {
				t.Errorf("after %s, proposal %d: pending %v", name, i, pending)
			}
		}
	}
}

// look is an observation at a time after a run.
type look struct {
	seen   Proposal
	waited time.Duration
	last   bool
}

// After a run, the engine waits for the goal of the approved plan. An observation with a late member or, for a while,
// a silent host is not the last one.
func TestWaitAfterRun(t *testing.T) {
	t.Parallel()
	const cp, worker = "192.0.2.11", "192.0.2.21"
	person := []problem.Instruction{{Host: worker}}
	clean := plan.Plan{}
	well := Proposal{Decisions: []decide.Decision{{Route: fsm.Nothing}}}
	late := Proposal{
		Plan:      plan.Plan{Operator: person},
		Decisions: []decide.Decision{{Route: fsm.Instruct, ComingUp: []string{worker}}},
	}
	broken := Proposal{Plan: plan.Plan{Operator: person}, Decisions: []decide.Decision{{Route: fsm.Instruct}}}
	silent := broken
	silent.Want = desired.Cluster{Workers: []desired.Host{{ID: worker, Hostname: "w"}}}
	silent.Observed.World.Hosts = map[string]observed.Host{worker: {Reach: observed.Unreachable}}
	silent.Observed.World.API.Nodes = []observed.Node{{Name: "w", Ready: observed.Yes}}
	more := Proposal{Plan: plan.Plan{Again: "for the rest"}, Decisions: []decide.Decision{{Route: fsm.Join}}}
	for name, c := range map[string]struct {
		approved plan.Plan
		after    Proposal
		waited   time.Duration
		ends     bool
	}{
		"all is well":                                     {clean, well, 0, true},
		"a member is late":                                {clean, late, 0, false},
		"a host is silent":                                {clean, silent, 2 * HangTimeout, false},
		"a person has to act since":                       {clean, broken, 0, false},
		"more is to be done, as was known":                {more.Plan, more, 0, true},
		"more is to be done, and a member is late":        {more.Plan, late, 0, false},
		"a person had to act":                             {broken.Plan, broken, 0, true},
		"a person had to act, and has":                    {broken.Plan, well, 0, true},
		"a person had to act, and a member is late":       {broken.Plan, late, 2 * HangTimeout, false},
		"a person had to act, and a host is silent":       {broken.Plan, silent, HangTimeout - 1, false},
		"a person had to act, and a host has been silent": {broken.Plan, silent, HangTimeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			approved := Proposal{Request: Apply{}, Plan: c.approved}
			if pending := c.after.pendingAfter(approved, c.waited); len(pending) == 0 != c.ends {
				t.Errorf("pending: %v", pending)
			}
		})
	}
}

// An approved request may be refused a moment later because a member is late. It is then planned again, not given up.
func TestARefusalThatMayPassIsAWorldThatChanged(t *testing.T) {
	t.Parallel()
	refused := &ConfigError{errors.New("a quorum would be lost")}
	late := Proposal{Request: Remove{}, Decisions: []decide.Decision{{ComingUp: []string{"cp-1"}}}}
	well := Proposal{Request: Remove{}, Decisions: []decide.Decision{{}}}
	if err := late.whyChanged(refused); !errors.Is(err, ErrWorldChanged) || errors.Is(err, refused) ||
		!strings.Contains(err.Error(), "a quorum would be lost") {
		t.Errorf("with a late member: %v", err)
	}
	if err := well.whyChanged(refused); !errors.Is(err, refused) || errors.Is(err, ErrWorldChanged) {
		t.Errorf("without a late member: %v", err)
	}
}

// After a replacement, differences are observed again for a while: they may come from what has just started. Work
// elsewhere stays.
func TestWaitAfterReplacement(t *testing.T) {
	t.Parallel()
	well := Proposal{Decisions: []decide.Decision{{Route: fsm.Nothing}}}
	late := Proposal{Decisions: []decide.Decision{{ComingUp: []string{"cp-1"}}}}
	steps := plan.Plan{Steps: []plan.Step{{ID: "record"}}}
	differs := Proposal{Decisions: []decide.Decision{{Route: fsm.Repair}}, Plan: steps}
	for name, c := range map[string]struct {
		after  Proposal
		waited time.Duration
		ends   bool
	}{
		"all is well":                {well, 0, true},
		"a member is late":           {late, 2 * HangTimeout, false},
		"something differs":          {differs, HangTimeout - 1, false},
		"something differs for long": {differs, HangTimeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if pending := c.after.pendingAfter(Proposal{Request: Replace{}}, c.waited); len(pending) == 0 != c.ends {
				t.Errorf("pending: %v", pending)
			}
		})
	}
}

// A probe of a busy host may come when its API server or etcd member is late. As long as the host reports that it is
// healthy, they may answer the next probe.
func TestWhatMayOnlyBeLateIsComingUp(t *testing.T) {
	t.Parallel()
	const cp, worker = "192.0.2.11", "192.0.2.21"
	const yes, no, unknown = observed.Yes, observed.No, observed.Unknown
	starting := func(name string) []Pending { return []Pending{{name, Starting}} }
	for name, c := range map[string]struct {
		is        condition.Condition
		coming    []string
		api, etcd observed.Tri
		slow      bool
		node      observed.Tri // its Node is ready; the worker itself was not probed
		want      []Pending
	}{
		"all answers":            {condition.Healthy, nil, yes, yes, false, unknown, nil},
		"the API is late":        {condition.Healthy, nil, no, yes, false, unknown, []Pending{{"the API", Slow}}},
		"etcd is late":           {condition.Healthy, nil, yes, no, false, unknown, []Pending{{"etcd", Slow}}},
		"not probed":             {condition.Healthy, nil, unknown, unknown, false, unknown, nil},
		"no host is healthy":     {condition.Unreachable, nil, no, no, false, unknown, nil},
		"a comparison is late":   {condition.Healthy, nil, yes, yes, true, unknown, []Pending{{"flannel", Slow}}},
		"a worker is late":       {condition.Healthy, []string{worker}, yes, yes, false, unknown, starting("w")},
		"only host comes up":     {condition.Unready, []string{cp}, no, no, false, unknown, starting("cp")},
		"silent, its Node ready": {condition.Healthy, nil, yes, yes, false, yes, []Pending{{"w", Silent}}},
		"silent, its Node not":   {condition.Healthy, nil, yes, yes, false, no, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Proposal{
				Want: desired.Cluster{ControlPlane: []desired.Host{{ID: cp}}, Workers: []desired.Host{{ID: worker}}},
				Decisions: []decide.Decision{{ComingUp: c.coming, Hosts: map[string]condition.Assessment{
					cp: {Condition: c.is}, worker: {Condition: condition.Healthy},
				}}},
				Plan: plan.Plan{
					Hosts: map[string]string{cp: "cp", worker: "w"}, Nodes: map[string]string{cp: "cp", worker: "w"},
				},
			}
			p.Observed.World.API.Reached, p.Observed.World.Etcd.Reached = c.api, c.etcd
			p.Observed.World.API.Nodes = []observed.Node{
				{Name: "w", Ready: c.node}, {Name: "other", Ready: observed.Yes},
			}
			p.Observed.World.API.Pods = decidetest.Pods(p.Want, p.Observed.World.API.Nodes)
			p.Observed.World.Hosts = map[string]observed.Host{worker: {Reach: observed.Unreachable}}
			p.Observed.World.API.Compared = map[string]observed.Comparison{
				"b": {Problem: "refused"}, "flannel": {Problem: "timeout", Late: c.slow}, "a": {},
			}
			if diff := cmp.Diff(c.want, p.pendingComponents()); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}

// A host that hangs is named at once: no step waits for it, and it will not be ready seconds later. Steps that depend
// on it wait, and so does an observation after a run.
func TestHangingHostIsNotProbedAgain(t *testing.T) {
	t.Parallel()
	const cp, worker, other = "192.0.2.11", "192.0.2.21", "192.0.2.22"
	elsewhere, blocked := plan.Plan{Steps: []plan.Step{{Host: other}}}, plan.Plan{Blocked: "by a member"}
	refused := &ConfigError{errors.New("a quorum would be lost")}
	for name, c := range map[string]struct {
		hangs string
		class string
		plan  plan.Plan
		err   error
		late  bool
	}{
		"a worker":                         {worker, observed.ClassHanging, plan.Plan{}, nil, false},
		"a worker, with steps elsewhere":   {worker, observed.ClassHanging, elsewhere, nil, false},
		"a worker, in a plan of others":    {worker, observed.ClassHanging, blocked, nil, false},
		"a worker with a step":             {other, observed.ClassHanging, elsewhere, nil, true},
		"a member of etcd":                 {cp, observed.ClassHanging, plan.Plan{}, nil, false},
		"a member of etcd, with steps":     {cp, observed.ClassHanging, elsewhere, nil, true},
		"a member of etcd, which blocks":   {cp, observed.ClassHanging, blocked, nil, true},
		"it is why a request was refused":  {worker, observed.ClassHanging, plan.Plan{}, refused, true},
		"a worker that breaks off":         {worker, "lost", plan.Plan{}, nil, true},
		"a worker that is slow to log in":  {worker, "unreachable", plan.Plan{}, nil, true},
		"a worker that is slow, and steps": {worker, "unreachable", elsewhere, nil, true},
	} {
		p := Proposal{Request: Apply{}, Plan: c.plan, Decisions: []decide.Decision{{Route: fsm.Instruct}}}
		p.Want = desired.Cluster{
			ControlPlane: []desired.Host{{ID: cp, Role: desired.ControlPlane, Hostname: "cp"}},
			Workers:      []desired.Host{{ID: worker, Hostname: "w"}, {ID: other, Hostname: "o"}},
		}
		p.Observed.World.API.Nodes = []observed.Node{
			{Name: "cp", Ready: observed.Yes}, {Name: "w", Ready: observed.Yes}, {Name: "o", Ready: observed.Yes},
		}
		p.Observed.World.Hosts = map[string]observed.Host{
			c.hangs: {Reach: observed.Unreachable, Class: c.class},
		}
		if got := p.Pending(c.err); len(got) > 0 != c.late {
			t.Errorf("%s: pending %v", name, got)
		}
		if after := p.pendingAfter(Proposal{Request: Apply{}}, 0); len(after) == 0 || after[0].Why != Silent {
			t.Errorf("%s: pending after a run: %v", name, after)
		}
	}
}

// A cluster matches only after its components had time to start. Other results do not wait for components, nor do
// requests about single hosts.
func TestComponentsThatDoNotRunAreWaitedFor(t *testing.T) {
	t.Parallel()
	well := Proposal{Request: Apply{}, Decisions: []decide.Decision{{Route: fsm.Nothing}}, Want: desired.Cluster{
		ControlPlane: []desired.Host{{ID: "1", Hostname: "a"}}, Workers: []desired.Host{{ID: "2", Hostname: "b"}},
	}}
	well.Observed.World.API = observed.API{Reached: observed.Yes, Nodes: []observed.Node{
		{Name: "a", Ready: observed.Yes}, {Name: "b", Ready: observed.Yes}, {Name: "machine", Ready: observed.Yes},
	}}
	one := well
	one.Request = Apply{Limit: map[string]bool{"2": true}}
	silent, differs, wrong, renews, leaves := well, well, well, well, well
	silent.Observed.World.API.Reached = observed.Unknown
	differs.Plan.Steps = []plan.Step{{ID: "record"}}
	wrong.Decisions = []decide.Decision{{Route: fsm.Error}}
	renews.Request, leaves.Request = RenewCertificates{}, Remove{}
	dns := Pending{"cluster DNS", NotRunning}
	lacks, onB := []Pending{{"kube-proxy on a and b", NotRunning}, dns}, []Pending{{"kube-proxy on b", NotRunning}, dns}
	for name, c := range map[string]struct {
		p              Proposal
		after, pending []Pending
	}{
		"nothing else is to be done": {well, lacks, lacks},
		"about one host alone":       {one, onB, onB},
		"not probed":                 {silent, nil, nil},
		"something is to be done":    {differs, nil, nil},
		"nothing can be done":        {wrong, nil, nil},
		"certificates are renewed":   {renews, lacks, nil},
		"a host leaves":              {leaves, lacks, nil},
	} {
		if diff := cmp.Diff(c.after, c.p.pendingComponents()); diff != "" {
			t.Errorf("%s: unready (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.pending, c.p.Pending(nil)); diff != "" {
			t.Errorf("%s: pending (-want +got):\n%s", name, diff)
		}
	}
	if refused := leaves.Pending(&ConfigError{errors.New("a quorum would be lost")}); len(refused) > 0 {
		t.Errorf("a refusal waits for %v", refused)
	}
	for _, run := range []Request{Apply{}, Replace{}, Remove{}} {
		if diff := cmp.Diff(lacks, well.pendingAfter(Proposal{Request: run}, 2*HangTimeout)); diff != "" {
			t.Errorf("after %T (-want +got):\n%s", run, diff)
		}
	}
	well.Observed.World.API.Pods = decidetest.Pods(well.Want, well.Observed.World.API.Nodes)
	for _, run := range []Request{Apply{}, Replace{}, Remove{}} {
		if pending := well.pendingAfter(Proposal{Request: run}, 0); len(pending) > 0 {
			t.Errorf("after %T, with all components: %v", run, pending)
		}
	}
}

// Which requests depend on a member that is not healthy.
func TestWhatARequestDependsOn(t *testing.T) {
	t.Parallel()
	const cp, other = "192.0.2.11", "192.0.2.12"
	refused := &ConfigError{errors.New("a quorum would be lost")}
	for name, c := range map[string]struct {
		request Request
		err     error
		pending bool
	}{
		"apply":                       {Apply{}, nil, true},
		"an error":                    {Apply{}, errors.New("odd"), false},
		"renew certificates":          {RenewCertificates{}, nil, true},
		"rotate a CA":                 {RotateCA{}, nil, true},
		"recover":                     {Recover{}, nil, false},
		"recover, refused":            {Recover{}, refused, false},
		"remove":                      {Remove{}, nil, false},
		"remove, refused":             {Remove{}, refused, true},
		"remove, with an error":       {Remove{}, errors.New("odd"), false},
		"replace another host":        {Replace{Host: other}, nil, true},
		"replace the unhealthy host":  {Replace{Host: cp}, nil, false},
		"replace, refused":            {Replace{Host: cp}, refused, true},
		"replace a host that is gone": {Replace{Host: other, HostGone: true}, nil, false},
		"reset":                       {Reset{}, nil, false},
		"reset, refused":              {Reset{}, refused, true},
		"a snapshot":                  {Snapshots{}, nil, false},
		"a Machine's host":            {Worker{}, nil, false},
	} {
		p := Proposal{
			Request: c.request, Decisions: []decide.Decision{{ComingUp: []string{cp}}},
			Plan: plan.Plan{Hosts: map[string]string{cp: "cp-1"}},
		}
		var want []Pending
		if c.pending {
			want = []Pending{{"cp-1", Starting}}
		}
		if diff := cmp.Diff(want, p.Pending(c.err), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A member that may start is observed again for the caller's timeout; a silent host for a shorter one.
func TestProposingUntilReady(t *testing.T) {
	t.Parallel()
	silent := Proposal{
		Request:   Apply{},
		Decisions: []decide.Decision{{}},
		Want:      desired.Cluster{Workers: []desired.Host{{ID: playedWorker, Hostname: "worker"}}},
	}
	silent.Observed.World.Hosts = map[string]observed.Host{playedWorker: {Reach: observed.Unreachable}}
	silent.Observed.World.API.Nodes = []observed.Node{{Name: "worker", Ready: observed.Yes}}
	both := silent
	both.Decisions = []decide.Decision{{ComingUp: []string{playedControlPlane}}}
	refused := &ConfigError{errors.New("a quorum would be lost")}
	for name, c := range map[string]struct {
		first   Proposal
		err     error
		timeout time.Duration // 0: nothing is pending
	}{
		"nothing is pending":         {Proposal{Request: Apply{}, Decisions: []decide.Decision{{}}}, nil, 0},
		"refused, with no remedy":    {Proposal{Request: Remove{}, Decisions: []decide.Decision{{}}}, refused, 0},
		"a host is silent":           {silent, nil, HangTimeout},
		"a member is unhealthy, too": {both, nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probes, told := 0, time.Duration(0)
			s := play(t, func(config *Config) {
				config.Observe = func(context.Context, probe.Request) (probe.Result, error) {
					probes++
					return probe.Result{World: living(config.Want, observed.Host{})}, nil
				}
			})
			p, err := s.ProposeUntilReady(t.Context(), c.first, c.err, time.Minute,
				func(_ []Pending, timeout time.Duration) { told += timeout })
			if told != c.timeout {
				t.Errorf("waiting for %s, want %s", told, c.timeout)
			}
			if c.timeout == 0 && (probes > 0 || !errors.Is(err, c.err) || len(p.Observed.World.Hosts) > 0) {
				t.Errorf("probed %d times; %v", probes, err)
			}
			if c.timeout > 0 && (probes == 0 || err != nil || len(p.Pending(nil)) > 0) {
				t.Errorf("probed %d times; %v, pending %v", probes, err, p.Pending(nil))
			}
		})
	}
}
