package chart

import (
	"fmt"
	"strings"
)

// Dot draws the chart in Graphviz' language.
func (c Chart) Dot() string {
	var b strings.Builder
	b.WriteString("digraph decide {\n\trankdir=TB;\n\tnode [fontname=\"sans-serif\"];\n\tedge " +
		"[fontname=\"sans-serif\", fontsize=11];\n")
	for _, p := range c.Parts {
		if p.Heading != "" {
			fmt.Fprintf(&b, "\tsubgraph %q {\n\tlabel=%q;\n", "cluster_"+p.Heading, p.Heading)
		}
		for _, s := range p.States {
			fmt.Fprintf(&b, "\t%q [shape=box, style=rounded, label=%q];\n", s.ID, s.Text)
		}
		for _, s := range p.Ends {
			fmt.Fprintf(&b, "\t%q [shape=box, style=filled, fillcolor=%q, label=%q];\n", s.ID, s.Tone.paint().fill,
				s.Text)
		}
		for _, t := range p.Transitions {
			fmt.Fprintf(&b, "\t%q -> %q [label=%q];\n", t.From, t.To, t.On)
		}
		if p.Heading != "" {
			b.WriteString("\t}\n")
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws the chart as a Mermaid flowchart.
func (c Chart) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, p := range c.Parts {
		if p.Heading != "" {
			fmt.Fprintf(&b, "    subgraph %s\n", p.Heading)
		}
		for _, s := range p.States {
			fmt.Fprintf(&b, "    %s{{\"%s\"}}\n", s.ID, s.Text)
		}
		for _, s := range p.Ends {
			fmt.Fprintf(&b, "    %s([\"%s\"])\n", s.ID, s.Text)
		}
		for _, t := range p.Transitions {
			fmt.Fprintf(&b, "    %s -->|%s| %s\n", t.From, t.On, t.To)
		}
		if p.Heading != "" {
			b.WriteString("    end\n")
		}
		for _, s := range p.Ends {
			c := s.Tone.paint()
			fmt.Fprintf(&b, "    style %s fill:%s,stroke:%s,color:%s\n", s.ID, c.fill, c.line, c.text)
		}
	}
	return b.String()
}
