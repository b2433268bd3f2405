package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/text/diff"
	"kubeone/internal/text/phrase"
	"maps"
	"slices"
	"strings"
)

// Plan writes a plan as it is confirmed: what happens on each host and then to the cluster, what approval records, what
// the operator must do, notes, and one line that sums it up. Hosts with the same steps are written once, unless
// verbose. Changes within a step are written when verbose, or when they are few.
func Plan(w io.Writer, s Style, p plan.Plan, v Verbosity) {
	out := &page{style: s}
	view := planView{page: out, plan: p, verbose: v == Verbose, changes: v == Verbose || fewChanges(p)}
	view.addSteps()
	view.addContacts()
	view.addInstructions()
	view.addUnresolved()
	view.addNotes()
	view.addSummary()
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

// addSteps writes the steps of each host, then the cluster's.
func (v planView) addSteps() {
	if len(v.plan.Steps) == 0 {
		return
	}
	title := "Plan for cluster " + v.plan.Cluster
	if v.verbose {
		title += " (" + strings.Join(v.plan.Routes, ", ") + ")"
	}
	v.addHeading(title)
	groups := groupSteps(v.plan, !v.changes)
	column := titleWidth(groups)
	for _, g := range groups {
		v.addSpace()
		v.addParagraph("", g.hostTitle(), bold)
		v.addGroup(g, column)
	}
}

// addGroup writes the steps of one group. A reason that is the same as the step's before is not repeated.
func (v planView) addGroup(g group, column int) {
	reason := ""
	t := &table{indent: 2}
	for _, s := range g.steps {
		text := cleanText(s.Reason)
		if text == reason {
			text = ""
		}
		reason = cleanText(s.Reason)
		if s.Risk != plan.NoRisk && s.Risk != "" {
			text = strings.TrimSpace(text + " [" + string(s.Risk) + "]")
		}
		t.addRow(actionSymbol(s.Action), cell{padRight(cleanText(s.Title), column), plain}, cell{text, riskInk(s.Risk)})
	}
	for i, row := range t.renderLines(v.style) {
		for _, line := range row {
			v.addLine(line)
		}
		if v.changes {
			v.stepChanges(g.steps[i])
		}
	}
}

func (v planView) stepChanges(s plan.Step) {
	for _, c := range s.Changes {
		v.addParagraph(strings.Repeat(" ", 9), c, dim)
	}
}

// actionSymbol is an action's sign, in the place of the widest.
func actionSymbol(a plan.Action) cell {
	inks := map[plan.Action]ink{
		plan.Create:  green,
		plan.Change:  yellow,
		plan.Replace: magenta,
		plan.Remove:  red,
		plan.MustAct: yellow,
	}
	return cell{padLeft(string(a), len(plan.Replace)), inks[a]}
}

func riskInk(r plan.Risk) ink {
	if r == plan.NoRisk || r == "" {
		return dim
	}
	return yellow
}

func (v planView) addContacts() {
	if len(v.plan.FirstContacts) == 0 {
		return
	}
	v.addHeading("First contact: nobody has approved these host keys yet. Approving the plan records them.")
	ids := slices.SortedFunc(maps.Keys(v.plan.FirstContacts), func(a, b string) int {
		return strings.Compare(nameOf(v.plan.Hosts, a)+a, nameOf(v.plan.Hosts, b)+b)
	})
	t := &table{indent: 2}
	for _, id := range ids {
		t.addRow(cell{cleanText(nameOf(v.plan.Hosts, id)), plain}, cell{cleanText(id), plain},
			cell{cleanText(v.plan.FirstContacts[id]), plain})
	}
	v.addTable(t)
}

// addInstructions numbers what a person must do; the steps of each instruction have letters.
func (v planView) addInstructions() {
	if len(v.plan.Operator) == 0 {
		return
	}
	v.addHeading(string(plan.MustAct) + " You must act:")
	for i, o := range v.plan.Operator {
		v.addInstruction(i+1, atHost(v.plan.Hosts[o.Host], o.Reason()), o.Texts())
	}
}

// addInstruction writes one thing that a person must do.
func (p *page) addInstruction(number int, reason string, steps []string) {
	p.addParagraph(fmt.Sprintf("%3d. ", number), reason, yellow)
	for i, step := range steps {
		lead := fmt.Sprintf("     %c. ", 'a'+i)
		if i >= 26 {
			lead = "     -  "
		}
		p.addParagraph(lead, step, plain)
	}
}

func (v planView) addNotes() {
	if len(v.plan.Notes) == 0 {
		return
	}
	v.addHeading("Notes:")
	for _, n := range v.plan.Notes {
		v.addParagraph("  - ", n, plain)
	}
}

// addUnresolved says what is not known of what would be installed.
func (v planView) addUnresolved() {
	if len(v.plan.Unresolved) == 0 {
		return
	}
	v.addHeading("Not known: what would be installed. This plan can be read, and not be saved or carried out.")
	for _, line := range v.plan.Unresolved {
		v.addParagraph("  ", line, yellow)
	}
}

// addSummary is the line that sums the plan up, and what stops it or follows it.
func (v planView) addSummary() {
	v.addSpace()
	as := bold
	if v.plan.Blocked != "" || v.plan.Empty() && isError(v.plan) {
		as = red
	}
	v.addParagraph("", planSummary(v.plan), as)
	if v.plan.Again != "" {
		v.addParagraph("", "This is not all: "+cleanText(v.plan.Again)+".", yellow)
	}
}

// planSummary is the line that sums a plan up.
func planSummary(p plan.Plan) string {
	switch {
	case p.Blocked != "":
		return "Plan: nothing will be run. " + asSentence(p.Blocked)
	case !p.Empty():
		return Summarize(p).String()
	case isError(p):
		return "No plan: the problems must be put right first."
	}
	return "No changes. " + cleanText(Matched(p))
}

// isError reports whether there is no plan.
func isError(p plan.Plan) bool { return slices.Contains(p.Routes, string(fsm.Error)) }

// asSentence begins with a capital and ends with a full stop.
func asSentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimSuffix(text, ".") + "."
}

// group is hosts that have the same steps, or the cluster, which has no host.
type group struct {
	names []string // display names, each with its address where that is another
	steps []plan.Step
}

// groupSteps puts the steps of each host together, in the order in which the plan first names the hosts; the cluster's
// own steps come last. Fold puts hosts together whose steps read the same.
func groupSteps(p plan.Plan, fold bool) []group {
	var ids []string
	steps := map[string][]plan.Step{}
	for _, s := range p.Steps {
		if _, known := steps[s.Host]; !known && s.Host != "" {
			ids = append(ids, s.Host)
		}
		steps[s.Host] = append(steps[s.Host], s)
	}
	var out []group
	for _, id := range ids {
		g := group{[]string{fullName(p, id)}, steps[id]}
		same := slices.IndexFunc(out, func(other group) bool { return fold && groupKey(other) == groupKey(g) })
		if same >= 0 {
			out[same].names = append(out[same].names, g.names...)
			continue
		}
		out = append(out, g)
	}
	if cluster := steps[""]; len(cluster) > 0 {
		out = append(out, group{nil, cluster})
	}
	return out
}

// groupKey is what a reader sees of a group's steps while changes are not shown.
func groupKey(g group) string {
	var b strings.Builder
	for _, s := range g.steps {
		b.WriteString(strings.Join([]string{string(s.Action), s.Title, s.Reason, string(s.Risk)}, "\x00") + "\n")
	}
	return b.String()
}

func fullName(p plan.Plan, id string) string {
	name := nameOf(p.Hosts, id)
	if name == id || strings.HasPrefix(name, id+" (") { // it is called by its ID already
		return cleanText(name)
	}
	return cleanText(name + " (" + id + ")")
}

// hostTitle names all hosts of the group: who is changed must be seen before it is approved.
func (g group) hostTitle() string {
	switch len(g.names) {
	case 0:
		return "cluster"
	case 1:
		return g.names[0]
	}
	return phrase.Count(len(g.names), "host") + ", each: " + joinNames(g.names, len(g.names))
}

func titleWidth(groups []group) int {
	n := 0
	for _, g := range groups {
		for _, s := range g.steps {
			n = max(n, textWidth(cleanText(s.Title)))
		}
	}
	return n
}

// PlanDocument is the plan as JSON: the plan itself, and what a program would otherwise have to work out.
type PlanDocument struct {
	plan.Plan
	Digest   string            `json:"digest,omitempty"` // of all that the plan does; equal digests do the same
	Changes  bool              `json:"changes"`          // there is something to do, for apply or for the operator
	Summary  Summary           `json:"summary"`
	Trace    []fsm.Visit       `json:"trace,omitempty"`    // how the first route was found
	Problems []problem.Problem `json:"problems,omitempty"` // what stands in the way of a plan, or of more of it
	Exit     int               `json:"exit"`               // the exit status of the command plan
	Diffs    []diff.Set        `json:"diffs,omitempty"`    // which lines differ, if that was asked for
}

// PlanJSON is a plan as docs/json.md describes it, with which lines differ, if that is known. Decisions are those that
// Build returned with it.
func PlanJSON(p plan.Plan, diffs []diff.Set, decisions ...decide.Decision) ([]byte, error) {
	doc := PlanDocument{
		Plan: p, Digest: p.Digest(), Changes: !p.Empty(), Summary: Summarize(p),
		Problems: lastProblems(decisions), Exit: Exit(p, decisions...), Diffs: diffs,
	}
	if len(decisions) > 0 {
		doc.Trace = decisions[0].Trace
	}
	doc.Routes, doc.Steps = notNil(doc.Routes), notNil(doc.Steps)
	if doc.Hosts == nil {
		doc.Hosts = map[string]string{}
	}
	return encodeJSON(doc, "plan of "+p.Cluster)
}

// notNil makes a list that a program may walk without asking first.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// encodeJSON is a document as indented JSON with a final newline; <, > and & stand for themselves.
func encodeJSON(doc any, what string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("the %s as JSON: %w", what, err)
	}
	return b.Bytes(), nil
}
