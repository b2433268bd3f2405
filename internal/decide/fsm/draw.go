package fsm

import (
	"strings"

	"kubeone/internal/chart"
)

// Chart is the state machine as it is drawn from its table: questions in the order in which they are asked, and the
// routes to which their answers lead.
func (m Machine) Chart() chart.Chart {
	p := chart.Part{Start: "the answers of the probes", Lanes: true}
	for _, q := range m.questions() {
		p.States = append(p.States, chart.State{ID: m.node(q.state), Text: q.text, Note: string(q.state)})
	}
	for _, r := range m.Routes() {
		p.Ends = append(p.Ends, chart.State{ID: m.node(State(r)), Text: string(r), Tone: tone(r)})
	}
	for _, t := range m.Table() {
		p.Transitions = append(p.Transitions,
			chart.Transition{From: m.node(t.From), On: string(t.On), To: m.node(t.To)})
	}
	return chart.Chart{Title: m.title(), Parts: []chart.Part{p}}
}

// title is what a drawing shows.
func (m Machine) title() string {
	if m == Worker {
		return "How a Machine's worker is decided about: questions and routes"
	}
	return "How kubeone apply decides: questions and routes"
}

// node is a state's name in a drawing; routes have their own prefix, so that none is also a question.
func (m Machine) node(s State) string {
	prefix := "ask_"
	if isRoute(m.Routes(), s) {
		prefix = "do_"
	}
	return prefix + strings.ReplaceAll(string(s), "-", "_")
}

// tone says of a route whether nothing is wrong, something is done, a person or time must act, or nothing may be done.
func tone(r Route) chart.Tone {
	switch r {
	case Nothing:
		return chart.Fine
	case Instruct, Wait:
		return chart.Attention
	case DisasterRecovery, Error:
		return chart.Wrong
	default:
		return chart.Busy
	}
}
