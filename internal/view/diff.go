package view

import (
	"io"
	"strings"

	"kubeone/internal/text/diff"
)

// Diff writes which lines differ between what is live and what will be; hosts with the same lines stand together.
// Without any it says so.
func Diff(w io.Writer, s Style, sets []diff.Set) {
	out := &page{style: s}
	out.line(s.paint(bold, "Differences between what is live (-) and what will be (+):"))
	out.diffs(sets)
	if len(sets) == 0 {
		out.space()
		out.para("  ", "None that can be shown: no step of the plan changes a file or an object of which both are "+
			"known beforehand.", plain)
	}
	out.space()
	out.flush(w)
}

func (p *page) diffs(sets []diff.Set) {
	for _, set := range sets {
		p.space()
		title := "cluster"
		if len(set.Hosts) > 0 {
			title = strings.Join(set.Hosts, ", ")
		}
		p.para("", title+":", bold)
		for _, c := range set.Changes {
			p.change(c)
		}
	}
}

// change writes lines as they are: one that is broken would be another one.
func (p *page) change(c diff.Change) {
	p.para("  ", c.Of, plain)
	if c.Unknown != "" {
		p.para("    ", "not known: "+c.Unknown, yellow)
	}
	for _, line := range c.Lines {
		ink := dim
		switch {
		case strings.HasPrefix(line, "+"):
			ink = green
		case strings.HasPrefix(line, "-"):
			ink = red
		}
		p.line("    " + p.style.paint(ink, strings.TrimRight(clean(line), " ")))
	}
}
