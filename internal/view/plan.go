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

// Plan writes a plan for approval: the steps on each host and then on the cluster, the host keys that approval records,
// instructions for the operator, notes, and a summary. If verbose, it writes the changes within each step. Otherwise it
// writes them only if there are few, and if it does not write them, it writes hosts with the same steps together.
func Plan(w io.Writer, s Style, p plan.Plan, v Verbosity) {
	out := &page{style: s}
	view := planView{page: out, plan: p, verbose: v == Verbose, changes: v == Verbose || hasFewChanges(p)}
	view.addSteps()
	view.addContacts()
	view.addInstructions()
	view.addUnresolved()
	view.addNotes()
	view.addSummary()
	out.flush(w)
}

// maxChanges is the number of changes that are shown without --verbose.
const maxChanges = 10

func hasFewChanges(p plan.Plan) bool {
	n := 0
	for _, s := range p.Steps {
		n += len(s.Changes)
	}
	return n <= maxChanges
}

type planView struct {
	*page
	plan             plan.Plan
	verbose, changes bool
}

// addSteps writes the steps on each host, then the steps on the cluster.
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

// addGroup writes the steps in one group. It omits a reason that equals the reason for the previous step.
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
			v.addStepChanges(g.steps[i])
		}
	}
}

func (v planView) addStepChanges(s plan.Step) {
	for _, c := range s.Changes {
		v.addParagraph(strings.Repeat(" ", 9), c, dim)
	}
}

// actionSymbol returns the symbol for an action, padded to the width of the widest symbol.
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
	v.addHeading("First contact: no operator has approved these host keys yet. Approving the plan records them.")
	ids := slices.SortedFunc(maps.Keys(v.plan.FirstContacts), func(a, b string) int {
		return strings.Compare(nameOrID(v.plan.Hosts, a)+a, nameOrID(v.plan.Hosts, b)+b)
	})
	t := &table{indent: 2}
	for _, id := range ids {
		t.addRow(cell{cleanText(nameOrID(v.plan.Hosts, id)), plain}, cell{cleanText(id), plain},
			cell{cleanText(v.plan.FirstContacts[id]), plain})
	}
	v.addTable(t)
}

// addInstructions writes the instructions for the operator, with numbers. The steps of each instruction have letters.
func (v planView) addInstructions() {
	if len(v.plan.Operator) == 0 {
		return
	}
	v.addHeading(string(plan.MustAct) + " Action required:")
	for i, o := range v.plan.Operator {
		v.addInstruction(i+1, atHost(v.plan.Hosts[o.Host], o.Reason()), o.Texts())
	}
}

// addInstruction writes one instruction.
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

// addUnresolved lists the artifacts that could not be determined, with reasons.
func (v planView) addUnresolved() {
	if len(v.plan.Unresolved) == 0 {
		return
	}
	v.addHeading("Unknown: what would be installed. You can read this plan, but not save it or carry it out.")
	for _, line := range v.plan.Unresolved {
		v.addParagraph("  ", line, yellow)
	}
}

// addSummary writes the summary, and why the plan is not complete if it is not.
func (v planView) addSummary() {
	v.addSpace()
	color := bold
	if v.plan.Blocked != "" || v.plan.Empty() && isError(v.plan) {
		color = red
	}
	v.addParagraph("", planSummary(v.plan), color)
	if v.plan.Again != "" {
		v.addParagraph("", "This plan is not complete: "+cleanText(v.plan.Again)+".", yellow)
	}
}

// planSummary returns the plan in one line.
func planSummary(p plan.Plan) string {
	switch {
	case p.Blocked != "":
		return "Plan: no steps will run. " + asSentence(p.Blocked)
	case !p.Empty():
		return Summarize(p).String()
	case isError(p):
		return "No plan: fix the problems first."
	}
	return "No changes. " + cleanText(Matched(p))
}

// isError reports whether there is no plan because of problems.
func isError(p plan.Plan) bool { return slices.Contains(p.Routes, string(fsm.Error)) }

// asSentence capitalizes the first letter and adds a full stop, unless there is one.
func asSentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimSuffix(text, ".") + "."
}

// group is a set of hosts with the same steps, or the cluster.
type group struct {
	names []string // full names of the hosts; empty for the cluster
	steps []plan.Step
}

// groupSteps groups the steps by host, in the order in which the hosts first appear in the plan. The steps on the
// cluster come last. With fold, hosts whose steps have the same groupKey are in one group.
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

// groupKey returns what Plan writes about the steps of a group, without the changes within each step.
func groupKey(g group) string {
	var b strings.Builder
	for _, s := range g.steps {
		b.WriteString(strings.Join([]string{string(s.Action), s.Title, s.Reason, string(s.Risk)}, "\x00") + "\n")
	}
	return b.String()
}

// fullName returns the display name of a host, followed by its ID in parentheses if the ID differs.
func fullName(p plan.Plan, id string) string {
	name := nameOrID(p.Hosts, id)
	if name == id || strings.HasPrefix(name, id+" (") { // the name already contains the ID
		return cleanText(name)
	}
	return cleanText(name + " (" + id + ")")
}

// hostTitle returns the names of all hosts in the group, because the operator approves changes to each of them.
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

// PlanDocument is the JSON that "plan" prints: the plan, and values that programs would otherwise have to compute.
type PlanDocument struct {
	plan.Plan
	Digest   string            `json:"digest,omitempty"` // plans with the same digest carry out the same steps
	Changes  bool              `json:"changes"`          // there are steps or instructions
	Summary  Summary           `json:"summary"`
	Trace    []fsm.Visit       `json:"trace,omitempty"`    // the questions and answers that led to the first route
	Problems []problem.Problem `json:"problems,omitempty"` // problems that prevent the plan or further steps
	Exit     int               `json:"exit"`               // the exit status of the command plan
	Diffs    []diff.Set        `json:"diffs,omitempty"`    // differing lines, with --diff
}

// PlanJSON encodes a plan as a PlanDocument, described in docs/json.md. diffs can be nil. decisions are those that
// Build returned with the plan.
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

// notNil replaces nil with an empty list, so that it is encoded as [] instead of null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// encodeJSON returns indented JSON with a final newline. It does not escape <, > and &.
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
