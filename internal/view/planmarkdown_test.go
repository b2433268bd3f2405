package view

import (
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/text/diff"
)

func TestPlanAsMarkdown(t *testing.T) {
	t.Parallel()
	sets := []diff.Set{{Hosts: []string{"worker-1"}, Changes: []diff.Change{
		{Of: "/etc/motd", Lines: []string{"@@ -1 +1 @@", "-~~~", "+~~~~"}},
		{Of: "/etc/other", Unknown: "it cannot be read"},
	}}}
	unreached := decide.Decision{Problems: []problem.Problem{{Code: problem.HostUnreachable, Host: "203.0.113.11",
		Parameters: problem.Parameters{"error": "connection refused"}}}}
	for name, text := range map[string][]byte{
		"actions": PlanMarkdown(everyAction(), sets), "unreachable": PlanMarkdown(unreachable(), nil),
		"nothing": PlanMarkdown(nothing(), nil), "error": PlanMarkdown(failing(), nil, unreached),
	} {
		pinned(t, "plan-"+name+"-markdown.txt", string(text))
	}
}

// TestMarkdownOfHostileTexts checks that texts of hosts stay text in a comment and cannot end a fold, a cell or a
// block.
func TestMarkdownOfHostileTexts(t *testing.T) {
	t.Parallel()
	evil := "</details> | <img src=x> @everyone [x](http://evil.example) `code` **b**\n# heading"
	p := plan.Plan{Cluster: "prod", Routes: []string{"repair"}, Notes: []string{evil}, Steps: []plan.Step{
		{ID: "a", Host: "h", Action: plan.Change, Title: evil, Reason: evil},
	}, Hosts: map[string]string{"h": evil}}
	text := string(PlanMarkdown(p, []diff.Set{{Hosts: []string{evil}, Changes: []diff.Change{
		{Of: evil, Lines: []string{"+~~~", "+" + evil}}}}}))
	_, table, _ := strings.Cut(text, "|---|---|---|---|---|\n")
	row, _, _ := strings.Cut(table, "\n")
	if strings.Count(row, "|") != 6 {
		t.Errorf("a row of another number of cells: %s", row)
	}
	fence := "~~~~"
	before, rest, _ := strings.Cut(text, fence+"diff\n")
	_, after, _ := strings.Cut(rest, "\n"+fence+"\n")
	for _, bad := range []string{"<img", "@everyone", "](", "://", "**b", "\n# heading"} {
		if strings.Contains(before+after, bad) {
			t.Errorf("%q is markup in\n%s", bad, text)
		}
	}
	if strings.Count(before+after, "</details>") != 2 {
		t.Errorf("folds end elsewhere:\n%s", text)
	}
}

func TestMarkdownIsNotLongerThanAComment(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Cluster: "prod", Routes: []string{"repair"}}
	for i := range 2000 {
		p.Steps = append(p.Steps, plan.Step{Host: strings.Repeat("h", i%50+1), Action: plan.Change,
			Title: strings.Repeat("t", 90), Reason: strings.Repeat("r", i%90)})
		p.Notes = append(p.Notes, strings.Repeat("n", 200))
	}
	if n := len(PlanMarkdown(p, nil)); n > 65_000 {
		t.Errorf("%d bytes", n)
	}
}
