package fsm

import (
	"fmt"
	"strings"
)

// Dot draws the state machine from its table in Graphviz' language.
func Dot() string {
	var b strings.Builder
	b.WriteString("digraph decide {\n\trankdir=TB;\n\tnode [fontname=\"sans-serif\"];\n\tedge " +
		"[fontname=\"sans-serif\", fontsize=11];\n")
	for _, q := range questions() {
		fmt.Fprintf(&b, "\t%q [shape=box, style=rounded, label=%q];\n", node(q.state), q.text)
	}
	for _, r := range Routes() {
		fmt.Fprintf(&b, "\t%q [shape=box, style=filled, fillcolor=%q, label=%q];\n", node(State(r)), colour(r).fill, r)
	}
	for _, t := range Table() {
		fmt.Fprintf(&b, "\t%q -> %q [label=%q];\n", node(t.From), node(t.To), t.On)
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws the state machine from its table as a Mermaid flowchart.
func Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, q := range questions() {
		fmt.Fprintf(&b, "    %s{{\"%s\"}}\n", node(q.state), q.text)
	}
	for _, r := range Routes() {
		fmt.Fprintf(&b, "    %s([\"%s\"])\n", node(State(r)), r)
	}
	for _, t := range Table() {
		fmt.Fprintf(&b, "    %s -->|%s| %s\n", node(t.From), t.On, node(t.To))
	}
	for _, r := range Routes() {
		c := colour(r)
		fmt.Fprintf(&b, "    style %s fill:%s,stroke:%s,color:%s\n", node(State(r)), c.fill, c.line, c.text)
	}
	return b.String()
}

// node is a state's name in a drawing; routes have their own prefix, so that none is also a question.
func node(s State) string {
	prefix := "ask_"
	if isRoute(s) {
		prefix = "do_"
	}
	return prefix + strings.ReplaceAll(string(s), "-", "_")
}

// paint is the colours of an exit state.
type paint struct{ fill, line, text string }

// colour paints a route: green where nothing is wrong, blue where apply acts, amber where a person must, red where
// nothing may be done.
func colour(r Route) paint {
	switch r {
	case Nothing:
		return paint{"#dcfce7", "#16a34a", "#14532d"}
	case Instruct:
		return paint{"#fef3c7", "#d97706", "#78350f"}
	case DisasterRecovery, Error:
		return paint{"#fee2e2", "#dc2626", "#7f1d1d"}
	default:
		return paint{"#dbeafe", "#2563eb", "#1e3a8a"}
	}
}
