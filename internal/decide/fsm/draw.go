package fsm

import (
	"fmt"
	"strings"
)

// Dot draws the state machine from its table in Graphviz' language.
func (m Machine) Dot() string {
	var b strings.Builder
	b.WriteString("digraph decide {\n\trankdir=TB;\n\tnode [fontname=\"sans-serif\"];\n\tedge " +
		"[fontname=\"sans-serif\", fontsize=11];\n")
	for _, q := range m.questions() {
		fmt.Fprintf(&b, "\t%q [shape=box, style=rounded, label=%q];\n", m.node(q.state), q.text)
	}
	for _, r := range m.Routes() {
		fmt.Fprintf(&b, "\t%q [shape=box, style=filled, fillcolor=%q, label=%q];\n", m.node(State(r)),
			colour(r).fill, r)
	}
	for _, t := range m.Table() {
		fmt.Fprintf(&b, "\t%q -> %q [label=%q];\n", m.node(t.From), m.node(t.To), t.On)
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws the state machine from its table as a Mermaid flowchart.
func (m Machine) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, q := range m.questions() {
		fmt.Fprintf(&b, "    %s{{\"%s\"}}\n", m.node(q.state), q.text)
	}
	for _, r := range m.Routes() {
		fmt.Fprintf(&b, "    %s([\"%s\"])\n", m.node(State(r)), r)
	}
	for _, t := range m.Table() {
		fmt.Fprintf(&b, "    %s -->|%s| %s\n", m.node(t.From), t.On, m.node(t.To))
	}
	for _, r := range m.Routes() {
		c := colour(r)
		fmt.Fprintf(&b, "    style %s fill:%s,stroke:%s,color:%s\n", m.node(State(r)), c.fill, c.line, c.text)
	}
	return b.String()
}

// node is a state's name in a drawing; routes have their own prefix, so that none is also a question.
func (m Machine) node(s State) string {
	prefix := "ask_"
	if isRoute(m.Routes(), s) {
		prefix = "do_"
	}
	return prefix + strings.ReplaceAll(string(s), "-", "_")
}

// paint is the colours of an exit state.
type paint struct{ fill, line, text string }

// colour paints a route: green where nothing is wrong, blue where something is done, amber where a person or time must
// act, red where nothing may be done.
func colour(r Route) paint {
	switch r {
	case Nothing:
		return paint{"#dcfce7", "#16a34a", "#14532d"}
	case Instruct, Wait:
		return paint{"#fef3c7", "#d97706", "#78350f"}
	case DisasterRecovery, Error:
		return paint{"#fee2e2", "#dc2626", "#7f1d1d"}
	default:
		return paint{"#dbeafe", "#2563eb", "#1e3a8a"}
	}
}
