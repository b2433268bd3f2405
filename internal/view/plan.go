package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/plan"
)

// Plan writes a plan as it is confirmed: what happens on each host and then to the cluster, what approval records, what
// the operator must do, notes, and one line that sums it up. Hosts with the same steps are written once, unless
// verbose. Changes within a step are written when verbose, or when they are few.
func Plan(w io.Writer, s Style, p plan.Plan, v Verbosity) {
	out := &page{style: s}
	view := planView{page: out, plan: p, verbose: v == Verbose, changes: v == Verbose || fewChanges(p)}
	view.steps()
	view.contacts()
	view.operator()
	view.unresolved()
	view.notes()
	view.end()
	out.flush(w)
}

// few is how many changes are shown without being asked for.
const few = 10

func fewChanges(p plan.Plan) bool {
	n := 0
	for _, s := range p.Steps {
		n += len(s.Changes)
	}
	return n <= few
}

type planView struct {
	*page
	plan             plan.Plan
	verbose, changes bool
}

// steps writes the steps of each host, then the cluster's.
func (v planView) steps() {
	if len(v.plan.Steps) == 0 {
		return
	}
	title := "Plan for cluster " + v.plan.Cluster
	if v.verbose {
		title += " (" + strings.Join(v.plan.Routes, ", ") + ")"
	}
	v.heading(title)
	groups := groupSteps(v.plan, !v.changes)
	column := titleWidth(groups)
	for _, g := range groups {
		v.space()
		v.para("", g.title(), bold)
		v.group(g, column)
	}
}

// group writes the steps of one group. A reason that is the same as the step's before is not repeated.
func (v planView) group(g group, column int) {
	reason := ""
	t := &table{indent: 2}
	for _, s := range g.steps {
		text := clean(s.Reason)
		if text == reason {
			text = ""
		}
		reason = clean(s.Reason)
		if s.Risk != plan.NoRisk && s.Risk != "" {
			text = strings.TrimSpace(text + " [" + string(s.Risk) + "]")
		}
		t.add(symbol(s.Action), cell{pad(clean(s.Title), column), plain}, cell{text, riskInk(s.Risk)})
	}
	for i, row := range t.lines(v.style) {
		for _, line := range row {
			v.line(line)
		}
		if v.changes {
			v.stepChanges(g.steps[i])
		}
	}
}

func (v planView) stepChanges(s plan.Step) {
	for _, c := range s.Changes {
		v.para(strings.Repeat(" ", 9), c, dim)
	}
}

// symbol is an action's sign, in the place of the widest.
func symbol(a plan.Action) cell {
	inks := map[plan.Action]ink{
		plan.Create:  green,
		plan.Change:  yellow,
		plan.Replace: magenta,
		plan.Remove:  red,
		plan.MustAct: yellow,
	}
	return cell{right(string(a), len(plan.Replace)), inks[a]}
}

func riskInk(r plan.Risk) ink {
	if r == plan.NoRisk || r == "" {
		return dim
	}
	return yellow
}

func (v planView) contacts() {
	if len(v.plan.FirstContacts) == 0 {
		return
	}
	v.heading("First contact: nobody has approved these host keys yet. Approving the plan records them.")
	ids := slices.SortedFunc(maps.Keys(v.plan.FirstContacts), func(a, b string) int {
		return strings.Compare(nameOf(v.plan.Hosts, a)+a, nameOf(v.plan.Hosts, b)+b)
	})
	t := &table{indent: 2}
	for _, id := range ids {
		t.add(cell{clean(nameOf(v.plan.Hosts, id)), plain}, cell{clean(id), plain},
			cell{clean(v.plan.FirstContacts[id]), plain})
	}
	v.table(t)
}

// operator numbers what a person must do; the steps of each instruction have letters.
func (v planView) operator() {
	if len(v.plan.Operator) == 0 {
		return
	}
	v.heading(string(plan.MustAct) + " You must act:")
	for i, o := range v.plan.Operator {
		v.instruction(i+1, at(v.plan.Hosts[o.Host], o.Reason()), o.Texts())
	}
}

// instruction writes one thing that a person must do.
func (p *page) instruction(number int, reason string, steps []string) {
	p.para(fmt.Sprintf("%3d. ", number), reason, yellow)
	for i, step := range steps {
		lead := fmt.Sprintf("     %c. ", 'a'+i)
		if i >= 26 {
			lead = "     -  "
		}
		p.para(lead, step, plain)
	}
}

func (v planView) notes() {
	if len(v.plan.Notes) == 0 {
		return
	}
	v.heading("Notes:")
	for _, n := range v.plan.Notes {
		v.para("  - ", n, plain)
	}
}

// unresolved says what is not known of what would be installed.
func (v planView) unresolved() {
	if len(v.plan.Unresolved) == 0 {
		return
	}
	v.heading("Not known: what would be installed. This plan can be read, and not be saved or carried out.")
	for _, line := range v.plan.Unresolved {
		v.para("  ", line, yellow)
	}
}

// end is the line that sums the plan up, and what stops it or follows it.
func (v planView) end() {
	v.space()
	as := bold
	if v.plan.Blocked != "" || v.plan.Empty() && isError(v.plan) {
		as = red
	}
	v.para("", verdict(v.plan), as)
	if v.plan.Again != "" {
		v.para("", "This is not all: "+clean(v.plan.Again)+".", yellow)
	}
}

// verdict is the line that sums a plan up.
func verdict(p plan.Plan) string {
	switch {
	case p.Blocked != "":
		return "Plan: nothing will be run. " + sentence(p.Blocked)
	case !p.Empty():
		return Summarize(p).String()
	case isError(p):
		return "No plan: the problems must be put right first."
	}
	return "No changes. " + clean(Matched(p))
}

// isError reports whether there is no plan.
func isError(p plan.Plan) bool { return slices.Contains(p.Routes, string(fsm.Error)) }

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimSuffix(text, ".") + "."
}
