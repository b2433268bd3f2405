package fsm

import "fmt"

// question is what a state asks.
type question struct {
	state State
	text  string // as drawn, a sentence with a question mark
}

// questions returns every question in the order of the table; the first is where the machine starts.
func questions() [11]question {
	return [...]question{
		{AskHosts, "Are the hosts fit for what is wanted?"},
		{AskProvisioned, "Does a control plane exist?"},
		{AskControlPlane, "Is the control plane healthy?"},
		{AskQuorum, "Has etcd its quorum?"},
		{AskRepairable, "Can it be repaired?"},
		{AskEndpoint, "Is the API where the manifest says?"},
		{AskMissing, "Are hosts missing in the cluster?"},
		{AskWorkers, "Are the workers healthy?"},
		{AskVersion, "Which version is wanted?"},
		{AskConfiguration, "Does the configuration differ?"},
		{AskObjects, "Are addons, labels and record current?"},
	}
}

// answers returns every event with which the question of a state may answer; none for an exit state.
func answers(s State) []Event {
	switch s {
	case AskHosts:
		return []Event{OnFit, OnUnfit}
	case AskProvisioned:
		return []Event{OnYes, OnNo, OnNotKnown}
	case AskControlPlane:
		return []Event{OnHealthy, OnUnhealthy}
	case AskQuorum:
		return []Event{OnSatisfied, OnRecoverable, OnLost}
	case AskRepairable:
		return []Event{OnUnitsStopped, OnRegenerable, OnEdited, OnMemberDead, OnDataLost, OnNotRepairable}
	case AskEndpoint:
		return []Event{OnSame, OnDiffers}
	case AskMissing:
		return []Event{OnNone, OnMissing, OnMissingLater}
	case AskWorkers:
		return []Event{OnHealthy, OnUnitsStopped, OnRegenerable, OnEdited, OnUnhealthy}
	case AskVersion:
		return []Event{OnSame, OnHigher, OnDiffers, OnForced, OnLower, OnSkipsMinor, OnSkew, OnEdited, OnNotKnown}
	case AskConfiguration:
		return []Event{OnNone, OnEdited, OnDiffers}
	case AskObjects:
		return []Event{OnCurrent, OnStale}
	}
	return nil
}

// Walk asks from the start state until a transition leads to an exit state. The function answers the question of a
// state with one of its events, and says why in words.
func Walk(ask func(State) (Event, string)) (Route, []Visit) {
	asked, table := questions(), transitions()
	trace := make([]Visit, 0, len(asked))
	for state := asked[0].state; ; {
		at := position(asked[:], state)
		if at == len(asked) {
			return Route(state), trace
		}
		event, why := ask(state)
		to := next(table[:], state, event)
		trace = append(trace, Visit{state, event, to, why})
		state = to
	}
}

// next is where the table leads. A question that answers with an event the table lacks is a mistake in this package
// that check finds; it ends at error.
func next(table []Transition, from State, on Event) State {
	for _, t := range table {
		if t.From == from && t.On == on {
			return t.To
		}
	}
	return State(Error)
}

// check says what is wrong with a table for the questions: events without a transition, or with two; transitions from
// exit states, or on events that a question does not have; states that cannot be reached; targets that are neither a
// question nor a route; and circles, in which a decision could go round for ever.
func check(asked []question, table []Transition) []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	uses := make(map[Transition]int)
	for _, t := range table {
		uses[Transition{From: t.From, On: t.On}]++
		if position(asked, t.To) == len(asked) && !isRoute(t.To) {
			fail("%s on %q leads to %q, which is neither a question nor a route", t.From, t.On, t.To)
		}
		if position(asked, t.To) <= position(asked, t.From) {
			fail("%s on %q leads back to %s", t.From, t.On, t.To)
		}
	}
	for _, q := range asked {
		for _, e := range answers(q.state) {
			if n := uses[Transition{From: q.state, On: e}]; n != 1 {
				fail("%s has %d transitions on %q", q.state, n, e)
			}
			delete(uses, Transition{From: q.state, On: e})
		}
	}
	for t := range uses {
		fail("%s has a transition on %q, which is never answered there", t.From, t.On)
	}
	return append(errs, unreached(asked, table)...)
}

// unreached names the questions and routes to which no path leads.
func unreached(asked []question, table []Transition) []error {
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
	for _, r := range Routes() {
		if !seen[State(r)] {
			errs = append(errs, fmt.Errorf("the route %s is never taken", r))
		}
	}
	return errs
}

// position is the place of a question in the order; exit states come after all.
func position(asked []question, s State) int {
	for i := range asked {
		if asked[i].state == s {
			return i
		}
	}
	return len(asked)
}

func isRoute(s State) bool {
	for _, r := range Routes() {
		if State(r) == s {
			return true
		}
	}
	return false
}
