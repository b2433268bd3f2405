package view

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
)

func TestPlanAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		plan  plan.Plan
		style Style
		v     Verbosity
	}{
		{"install", install(), onTerminal, Normal},
		{"install-verbose", install(), inPipe, Verbose},
		{"worker", oneMoreWorker(), inPipe, Normal},
		{"workers-fold", manyWorkers(), narrow, Normal},
		{"repair", restartedKubelet(), inPipe, Normal},
		{"unreachable", unreachable(), onTerminal, Normal},
		{"unreachable-narrow", unreachable(), narrow, Normal},
		{"upgrade", upgrade(), inPipe, Normal},
		{"blocked", unsafe(), inPipe, Normal},
		{"nothing", nothing(), inPipe, Normal},
		{"error", failing(), inPipe, Normal},
		{"actions", everyAction(), inPipe, Normal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) { Plan(b, c.style, c.plan, c.v) })
			mustBePlain(t, c.style, got)
			pinned(t, "plan-"+c.name+".txt", got)
		})
	}
}

func TestPlanInColourIsThePlanInPlainWithColours(t *testing.T) {
	t.Parallel()
	for _, p := range []plan.Plan{install(), unreachable(), upgrade(), everyAction(), nothing()} {
		colour := render(func(b *bytes.Buffer) { Plan(b, inColour, p, Normal) })
		if colour == escapeSequence.ReplaceAllString(colour, "") {
			t.Errorf("no colours in:\n%s", colour)
		}
		want := render(func(b *bytes.Buffer) { Plan(b, onTerminal, p, Normal) })
		if diff := cmp.Diff(want, escapeSequence.ReplaceAllString(colour, "")); diff != "" {
			t.Errorf("colours change the text (-plain +colour):\n%s", diff)
		}
	}
}

func TestSummaryCountsAndSaysIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan plan.Plan
		want string
	}{
		{install(), "Plan: 4 hosts to join, 26 steps: 23 to create, 2 to change, 1 to remove."},
		{oneMoreWorker(), "Plan: 1 host to join, 7 steps: 4 to create, 1 to change, 2 to remove."},
		{unreachable(), "Plan: 3 steps: 1 to create, 2 to change, 0 to remove. 2 tasks for you."},
		{everyAction(), "Plan: 5 steps: 1 to create, 1 to change, 1 to replace, 1 to remove. 1 task for you."},
		{plan.Plan{Operator: make([]problem.Instruction, 1)}, "Plan: no steps. 1 task for you."},
	} {
		if diff := cmp.Diff(c.want, Summarize(c.plan).String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestExitStatusOfAPlan(t *testing.T) {
	t.Parallel()
	wrong := func(c problem.Code) decide.Decision {
		return decide.Decision{Route: fsm.Error, Problems: []problem.Problem{{Code: c}}}
	}
	for _, c := range []struct {
		name      string
		plan      plan.Plan
		decisions []decide.Decision
		want      int
	}{
		{"nothing to do", nothing(), []decide.Decision{{Route: fsm.Nothing}}, 0},
		{"steps", install(), nil, 2},
		{"blocked", unsafe(), nil, 2},
		{"only instructions", plan.Plan{Operator: make([]problem.Instruction, 1)}, nil, 2},
		{"steps before a problem", restartedKubelet(), []decide.Decision{{}, wrong(problem.ControlPlaneMissing)}, 2},
		{"a problem nobody told", failing(), nil, 1},
		{"runtime", failing(), []decide.Decision{wrong(problem.PortTaken)}, 10},
		{"etcd", failing(), []decide.Decision{wrong(problem.EtcdQuorumLost)}, 11},
		{"kube", failing(), []decide.Decision{wrong(problem.VersionsUnknown)}, 12},
		{"ssh", failing(), []decide.Decision{wrong(problem.HostKeyRefused)}, 13},
		{"connection", failing(), []decide.Decision{wrong(problem.HostUnreachable)}, 14},
		{"config", failing(), []decide.Decision{wrong(problem.ControlPlaneMissing)}, 15},
		{"another class", failing(), []decide.Decision{wrong("new")}, 1},
		{"a field is not carried out", plan.Plan{NotCarriedOut: []string{"features.foo"}}, nil, ExitExcept},
		{"a file is another", plan.Plan{Unlike: []string{"a file"}}, nil, ExitExcept},
	} {
		if got := Exit(c.plan, c.decisions...); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.name, got, c.want)
		}
	}
}

// A match without exceptions is one of everything that is set.
func TestWhatAMatchExcepts(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]plan.Plan{
		"The cluster matches the manifest.": {},
		"The cluster matches the manifest, except for: features.foo, a file.": {
			NotCarriedOut: []string{"features.foo"}, Unlike: []string{"a file"},
		},
	} {
		if got := Matched(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlanAsJSON(t *testing.T) {
	t.Parallel()
	trace := []fsm.Visit{{State: fsm.AskHosts, Event: fsm.OnFit, To: fsm.AskProvisioned, Why: "4 hosts are fit"}}
	for _, c := range []struct {
		name      string
		plan      plan.Plan
		decisions []decide.Decision
	}{
		{"worker", oneMoreWorker(), []decide.Decision{{Route: fsm.Join, Trace: trace}, {Route: fsm.Nothing}}},
		{"nothing", nothing(), nil},
		{
			"error", failing(), []decide.Decision{
				{
					Route: fsm.Error,
					Problems: []problem.Problem{
						{Code: problem.HostLoginRefused, Host: "203.0.113.11",
							Parameters: problem.Parameters{"error": "login failed"}},
					},
				},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := PlanJSON(c.plan, nil, c.decisions...)
			if err != nil {
				t.Fatal(err)
			}
			pinned(t, "plan-"+c.name+".json", string(got))
		})
	}
}

func TestPlanJSONHoldsTheWholePlan(t *testing.T) {
	t.Parallel()
	for _, want := range []plan.Plan{install(), unreachable(), upgrade(), everyAction()} {
		text, err := PlanJSON(want, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got plan.Plan
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.Digest() != want.Digest() {
			t.Errorf("the plan read back has another digest:\n%s", text)
		}
	}
}
