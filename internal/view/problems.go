package view

import (
	"io"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/problem"
)

// Problems writes what stands in the way: each with its host's name, what was found and wanted, and what helps. Names
// are display names by host ID; a host without one is called by its ID.
func Problems(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.diagnose("error: ", red, ps, names)
	out.flush(w)
}

// Warnings writes what does not stop anything, as Problems does.
func Warnings(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.diagnose("warning: ", yellow, ps, names)
	out.flush(w)
}

func (p *page) diagnose(severity string, as ink, ps []problem.Problem, names map[string]string) {
	for _, found := range ps {
		p.para(p.style.paint(as, severity), at(nameOf(names, found.Host), found.What()), plain)
		if do := found.Do(); do != "" {
			p.para(strings.Repeat(" ", width(severity)), do, dim)
		}
	}
}

// Decision writes how each decision was made: what was asked, the answer, the reason, and the route at the end. The
// first decision is about the world as it is, each further one about the world after the steps of those before.
func Decision(w io.Writer, s Style, decisions ...decide.Decision) {
	out := &page{style: s}
	for i, d := range decisions {
		title := "Decision"
		if i > 0 {
			title = "Then, after these steps"
		}
		out.heading(title)
		t := &table{indent: 2}
		for _, v := range d.Trace {
			t.add(cell{string(v.State), plain}, cell{string(v.Event), bold}, cell{clean(v.Why), dim})
		}
		out.table(t)
		route := string(d.Route)
		for i, also := range d.Also {
			lead := ", "
			if i == 0 {
				lead = "; before that "
			}
			route += lead + string(also)
		}
		out.line("  " + s.pick("→ ", "-> ") + s.paint(bold, route))
	}
	out.flush(w)
}
