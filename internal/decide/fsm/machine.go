package fsm

import "fmt"

// Machine is one of the state machines.
type Machine string

const (
	// Cluster decides what a cluster needs next.
	Cluster Machine = "cluster"
	// Worker decides what a worker of a Machine needs next.
	Worker Machine = "worker"
)

type question struct {
	state State
	text  string // a sentence with a question mark, as drawn
}

// questionStates returns every question in order; the machine starts with the first.
func (m Machine) questionStates() []question {
	if m == Worker {
		return workerQuestions
	}
	return clusterQuestions
}

// possibleAnswers returns every possible answer to the question of a state; none for an exit state.
func (m Machine) possibleAnswers(s State) []Event {
	if m == Worker {
		return workerAnswers(s)
	}
	return clusterAnswers(s)
}

// Table returns the transition table. The first row leaves the start state. The caller must not change it.
func (m Machine) Table() []Transition {
	if m == Worker {
		return workerTransitions
	}
	return clusterTransitions
}

// Routes returns every route, the least dangerous to a running cluster first. The caller must not change them.
func (m Machine) Routes() []Route {
	if m == Worker {
		return workerRoutes
	}
	return clusterRoutes
}

// Walk asks questions from the start state until a transition leads to an exit state. Ask answers the question of a
// state with one of its events and a reason in words.
func (m Machine) Walk(ask func(State) (Event, string)) (Route, []Visit) {
	asked, table := m.questionStates(), m.Table()
	trace := make([]Visit, 0, len(asked))
	for state := asked[0].state; ; {
		at := questionOrder(asked, state)
		if at == len(asked) {
			return Route(state), trace
		}
		event, why := ask(state)
		to := nextState(table, state, event)
		trace = append(trace, Visit{state, event, to, why})
		state = to
	}
}

// nextState returns where the table leads. An event that the table lacks is a mistake in this package, which checkTable
// finds; it leads to error.
func nextState(table []Transition, from State, on Event) State {
	for _, t := range table {
		if t.From == from && t.On == on {
			return t.To
		}
	}
	return State(Error)
}

// checkTable returns what is wrong with a table: events without a transition or with two, transitions from exit states
// or on impossible events, unreachable states, targets that are neither a question nor a route, and cycles.
func (m Machine) checkTable(table []Transition) []error {
	asked := m.questionStates()
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	uses := make(map[Transition]int)
	for _, t := range table {
		uses[Transition{From: t.From, On: t.On}]++
		if questionOrder(asked, t.To) == len(asked) && !isRoute(m.Routes(), t.To) {
			fail("%s on %q leads to %q, which is neither a question nor a route", t.From, t.On, t.To)
		}
		if questionOrder(asked, t.To) <= questionOrder(asked, t.From) {
			fail("%s on %q leads back to %s", t.From, t.On, t.To)
		}
	}
	for _, q := range asked {
		for _, e := range m.possibleAnswers(q.state) {
			if n := uses[Transition{From: q.state, On: e}]; n != 1 {
				fail("%s has %d transitions on %q", q.state, n, e)
			}
			delete(uses, Transition{From: q.state, On: e})
		}
	}
	for t := range uses {
		fail("%s has a transition on %q, which is never answered there", t.From, t.On)
	}
	return append(errs, m.unreachedStates(table)...)
}

// unreachedStates returns an error for each question and route that cannot be reached.
func (m Machine) unreachedStates(table []Transition) []error {
	asked := m.questionStates()
	seen := map[State]bool{asked[0].state: true}
	for range table { // each round reaches at least one more state, or none is left
		for _, t := range table {
			seen[t.To] = seen[t.To] || seen[t.From]
		}
	}
	var errs []error
	for _, q := range asked {
		if !seen[q.state] {
			errs = append(errs, fmt.Errorf("the question %s is never asked", q.state))
		}
	}
	for _, r := range m.Routes() {
		if !seen[State(r)] {
			errs = append(errs, fmt.Errorf("the route %s is never taken", r))
		}
	}
	return errs
}

// questionOrder returns the position of a question; exit states come last.
func questionOrder(asked []question, s State) int {
	for i := range asked {
		if asked[i].state == s {
			return i
		}
	}
	return len(asked)
}

func isRoute(routes []Route, s State) bool {
	for _, r := range routes {
		if State(r) == s {
			return true
		}
	}
	return false
}
