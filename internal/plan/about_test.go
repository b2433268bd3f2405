package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
)

// askedWorkerOnly returns a cluster in which only the first worker was probed; the rest is known from the API.
func askedWorkerOnly(in decide.Input) decide.Input {
	id := in.Want.Workers[0].ID
	in.About = map[string]bool{id: true}
	in.Is.Hosts = map[string]observed.Host{id: in.Is.Hosts[id]}
	in.Is.Etcd = observed.Etcd{}
	return in
}

func TestAWorkerJoinsByWhatTheAPISays(t *testing.T) {
	t.Parallel()
	in := askedWorkerOnly(healthyCluster(3, 2, "w-1"))
	p, decisions := Build(Input{Decide: in})
	if decisions[0].Route != fsm.Join {
		t.Fatalf("%s: %+v", decisions[0].Route, decisions[0].Trace)
	}
	worker := in.Want.Workers[0].ID
	for _, s := range p.Steps {
		if s.Host != worker && s.Host != "" {
			t.Errorf("%s is on another host", s.ID)
		}
	}
	want := Scope{Hosts: []string{worker}}
	if diff := cmp.Diff(want, LockScope(p, in.Want, in.Is)); diff != "" || len(p.Operator) > 0 {
		t.Errorf("%s\n%+v", diff, p.Operator)
	}
}

// A join token is good for its own Node before anybody is given one; in a cluster where all is well too, unless the
// plan is about some hosts only.
func TestNobodyJoinsWhileAnyTokenIsGoodForAnyNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    decide.Input
		steps []string
		needs map[string]bool // whether the step needs the removal
	}{
		"a cluster grows": {healthyCluster(3, 2, "cp-3", "w-2"), nil,
			map[string]bool{"pki/cp-3": true, "join-worker/w-2": true, "prepare/w-2": false}},
		"a worker joins": {askedWorkerOnly(healthyCluster(3, 2, "w-1")), nil, map[string]bool{"join-worker/w-1": true}},
		"all is well":    {healthyCluster(1, 1), []string{"remove-auto-approval", "record"}, nil},
		"one of them":    {askedWorkerOnly(healthyCluster(1, 1)), []string{}, nil},
	} {
		c.in.Is.API.AutoApproval = observed.Yes
		p, _ := Build(Input{Decide: c.in})
		ids := []string{}
		for _, s := range p.Steps {
			ids = append(ids, s.ID)
		}
		if c.steps != nil && cmp.Diff(c.steps, ids) != "" {
			t.Errorf("%s: steps are %q, want %q", name, ids, c.steps)
		}
		for id, want := range c.needs {
			s, ok := p.Step(id)
			if !ok || slices.Contains(s.Needs, "remove-auto-approval") != want {
				t.Errorf("%s: %s needs %q", name, id, s.Needs)
			}
		}
	}
}

func TestWhatAWorkerNeedsOfTheControlPlane(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(in *decide.Input)
		joins  int
	}{
		"all is well": {func(*decide.Input) {}, 1},
		"one control-plane Node is not Ready": {func(in *decide.Input) {
			in.Is.API.Nodes[0].Ready = observed.No
		}, 1},
		"the API does not answer": {func(in *decide.Input) { in.Is.API = observed.API{Reached: observed.No} }, 0},
		"an older API server": {func(in *decide.Input) {
			for i := range in.Is.API.Nodes {
				in.Is.API.Nodes[i].KubeletVersion = "1.36.1"
			}
		}, 0},
	} {
		in := askedWorkerOnly(healthyCluster(3, 2, "w-1"))
		c.change(&in)
		if d := decide.Decide(in); len(d.Joins) != c.joins {
			t.Errorf("%s: %s, joins %v: %+v", name, d.Route, d.Joins, d.Trace)
		}
	}
}

func TestAHealthyWorkerNeedsNothingWhateverIsUnknownOfOthers(t *testing.T) {
	t.Parallel()
	p, decisions := Build(Input{Decide: askedWorkerOnly(healthyCluster(3, 2, "w-2"))})
	if !p.Empty() || decisions[0].Route != fsm.Nothing {
		t.Errorf("%s: %+v, %+v", decisions[0].Route, p.Steps, p.Operator)
	}
}

func TestAWorkerLeavesByWhatTheAPISays(t *testing.T) {
	t.Parallel()
	in := askedWorkerOnly(healthyCluster(3, 2))
	worker := in.Want.Workers[0].ID
	p, err := RemoveNode(in, worker, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Scope{Hosts: []string{worker}}, LockScope(p, in.Want, in.Is)); diff != "" || len(p.Steps) == 0 {
		t.Error(diff)
	}
}
