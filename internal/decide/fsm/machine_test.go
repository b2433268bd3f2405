package fsm

import (
	"slices"
	"strings"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	for _, m := range []Machine{Cluster, Worker} {
		for _, err := range m.checkTable(m.Table()) {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestCheckFindsMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func([]Transition) []Transition
		want   string
	}{
		{"an answer without a transition", func(tr []Transition) []Transition { return tr[1:] },
			`hosts has 0 transitions on "unfit"`},
		{"two transitions for an answer", func(tr []Transition) []Transition { return append(tr, tr[0]) },
			`hosts has 2 transitions on "unfit"`},
		{"a transition without an answer",
			func(tr []Transition) []Transition { return append(tr, Transition{AskHosts, OnLost, State(Error)}) },
			`hosts has a transition on "lost", which is never answered there`},
		{"a transition from an exit state",
			func(tr []Transition) []Transition { return append(tr, Transition{State(Join), OnYes, State(Error)}) },
			`join has a transition on "yes", which is never answered there`},
		{"a target that is nothing", func(tr []Transition) []Transition {
			tr[0].To = "limbo"
			return tr
		}, `hosts on "unfit" leads to "limbo", which is neither a question nor a route`},
		{"a circle", func(tr []Transition) []Transition {
			tr[len(tr)-1].To = AskHosts
			return tr
		}, `objects on "current" leads back to hosts`},
		{"a route never taken", func(tr []Transition) []Transition {
			tr[len(tr)-1].To = State(Error)
			return tr
		}, `the route nothing is never taken`},
		{"a question never asked", func(tr []Transition) []Transition {
			tr[1].To = AskMissing
			return tr
		}, `the question provisioned is never asked`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range Cluster.checkTable(tt.change(slices.Clone(Cluster.Table()))) {
				got = append(got, err.Error())
			}
			if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+tt.want+"\n") {
				t.Errorf("got %q, want %q among them", got, tt.want)
			}
		})
	}
}

func TestAnEventThatTheTableLacksEndsAtError(t *testing.T) {
	t.Parallel()
	if got := nextState(Cluster.Table(), AskHosts, OnLost); got != State(Error) {
		t.Errorf("got %s", got)
	}
	for _, m := range []Machine{Cluster, Worker} {
		if got := m.possibleAnswers(State(Join)); got != nil {
			t.Errorf("an exit state of %s answers %v", m, got)
		}
	}
}

// An answer that the table does not have must never lead to a change.
func TestUnexpectedAnswersEndAtError(t *testing.T) {
	t.Parallel()
	for _, m := range []Machine{Cluster, Worker} {
		route, trace := m.Walk(func(State) (Event, string) { return "nonsense", "a host lies" })
		if route != Error || len(trace) != 1 || trace[0].Why != "a host lies" {
			t.Errorf("%s: %s after %+v", m, route, trace)
		}
	}
}

func TestTraceHasEachAnswer(t *testing.T) {
	t.Parallel()
	answers := map[State]Event{AskHosts: OnFit, AskProvisioned: OnNo}
	route, trace := Cluster.Walk(func(s State) (Event, string) { return answers[s], "" })
	if route != Install || len(trace) != 2 || trace[1].State != AskProvisioned || trace[1].To != State(Install) {
		t.Errorf("%s after %+v", route, trace)
	}
}
