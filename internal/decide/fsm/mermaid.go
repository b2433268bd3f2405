package fsm

import (
	"fmt"
	"strings"
)

// Mermaid draws the state machine's table as a Mermaid flowchart: questions in order, and the routes that answers lead
// to.
func (m Machine) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, q := range m.questionStates() {
		fmt.Fprintf(&b, "    %s{{\"%s\"}}\n", m.nodeName(q.state), q.text)
	}
	for _, r := range m.Routes() {
		fmt.Fprintf(&b, "    %s([\"%s\"])\n", m.nodeName(State(r)), r)
	}
	for _, t := range m.Table() {
		fmt.Fprintf(&b, "    %s -->|%s| %s\n", m.nodeName(t.From), t.On, m.nodeName(t.To))
	}
	return b.String()
}

// nodeName returns the name of a state in a drawing. Routes have their own prefix, so that they never equal a question.
func (m Machine) nodeName(s State) string {
	prefix := "ask_"
	if isRoute(m.Routes(), s) {
		prefix = "do_"
	}
	return prefix + strings.ReplaceAll(string(s), "-", "_")
}
