package view

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/plan"
	"kubeone/internal/text/diff"
	"kubeone/internal/text/phrase"
)

// longestComment is how many bytes the steps and differences of a plan may take: GitHub takes 65,536 characters.
const longestComment = 50_000

// PlanMarkdown is a plan as a comment on a pull request: one line that sums it up, what stands in its way or needs a
// person, and below a fold its steps as a table, and which lines differ. Like the other forms, it has no secrets.
// Decisions are those that Build returned with the plan.
func PlanMarkdown(p plan.Plan, diffs []diff.Set, decisions ...decide.Decision) []byte {
	c := &comment{}
	c.addLine("### kubeone plan: cluster %s", escapeInline(p.Cluster))
	c.addLine("")
	c.addLine("**%s**", escapeInline(planSummary(p)))
	found := lastProblems(decisions)
	c.addBullets("Problems", len(found), func(i int) string {
		text := atHost(nameOf(p.Hosts, found[i].Host), found[i].What())
		if do := found[i].Do(); do != "" {
			text += "; " + do
		}
		return text
	})
	c.addBullets("You must act", len(p.Operator), func(i int) string {
		o := p.Operator[i]
		return atHost(p.Hosts[o.Host], o.Reason()) + ": " + strings.Join(o.Texts(), "; ")
	})
	c.addBullets("Not known: what would be installed", len(p.Unresolved), func(i int) string { return p.Unresolved[i] })
	c.addStepTable(p)
	c.addDiffs(diffs)
	contacts := slices.Sorted(maps.Keys(p.FirstContacts))
	c.addBullets("Host keys that approving the plan records", len(contacts), func(i int) string {
		return nameOf(p.Hosts, contacts[i]) + " " + p.FirstContacts[contacts[i]]
	})
	c.addBullets("Notes", len(p.Notes), func(i int) string { return p.Notes[i] })
	if digest := p.Digest(); digest != "" && len(p.Steps) > 0 {
		c.addLine("")
		c.addLine("Digest of the plan: `%s`", digest)
	}
	return []byte(c.text.String())
}

// comment is Markdown that is being written.
type comment struct{ text strings.Builder }

func (c *comment) addLine(format string, args ...any) { fmt.Fprintf(&c.text, format+"\n", args...) }

// isFull reports whether what is of any length must end here.
func (c *comment) isFull() bool { return c.text.Len() > longestComment }

// addBullets writes a list below a heading, if it has elements.
func (c *comment) addBullets(heading string, n int, text func(int) string) {
	if n == 0 {
		return
	}
	c.addLine("")
	c.addLine("**%s**", heading)
	c.addLine("")
	for i := range n {
		if c.isFull() {
			c.addLine("- and %d more", n-i)
			return
		}
		c.addLine("- %s", escapeInline(text(i)))
	}
}

// addFold writes what is shown on a click.
func (c *comment) addFold(title string, inside func()) {
	c.addLine("")
	c.addLine("<details><summary>%s</summary>", title)
	c.addLine("")
	inside()
	c.addLine("")
	c.addLine("</details>")
}

// addStepTable writes a table of the steps; hosts with the same steps are one row each step.
func (c *comment) addStepTable(p plan.Plan) {
	if len(p.Steps) == 0 {
		return
	}
	c.addFold(phrase.Count(len(p.Steps), "step"), func() {
		c.addLine("| | host | step | why | risk |")
		c.addLine("|---|---|---|---|---|")
		for _, g := range groupSteps(p, true) {
			for _, s := range g.steps {
				if c.isFull() {
					c.addLine("| | | and more: run kubeone plan | | |")
					return
				}
				c.addLine("| `%s` | %s | %s | %s | %s |", s.Action, escapeInline(g.hostTitle()), escapeInline(s.Title),
					escapeInline(s.Reason),
					escapeInline(string(s.Risk)))
			}
		}
	})
}

// addDiffs writes which lines differ, of each file or object in a block of its own.
func (c *comment) addDiffs(sets []diff.Set) {
	if len(sets) == 0 {
		return
	}
	c.addFold("Differences between what is live (-) and what will be (+)", func() {
		for _, set := range sets {
			where := "cluster"
			if len(set.Hosts) > 0 {
				where = strings.Join(set.Hosts, ", ")
			}
			for _, change := range set.Changes {
				if c.isFull() {
					c.addLine("And more: run kubeone plan --diff.")
					return
				}
				c.addLine("%s: %s", escapeInline(where), escapeInline(change.Of))
				if change.Unknown != "" {
					c.addLine("not known: %s", escapeInline(change.Unknown))
				}
				c.addBlock(change.Lines)
			}
		}
	})
}

// addBlock writes lines as they are, between fences that none of them is.
func (c *comment) addBlock(lines []string) {
	if len(lines) == 0 {
		return
	}
	fence := "~~~"
	for _, line := range lines {
		for strings.Contains(line, fence) {
			fence += "~"
		}
	}
	c.addLine("")
	c.addLine("%sdiff", fence)
	for _, line := range lines {
		c.addLine("%s", strings.TrimRight(cleanText(line), " "))
	}
	c.addLine("%s", fence)
	c.addLine("")
}

// escapeInline is a text of a host or a manifest that is nothing but text in Markdown: no markup, no link, and nobody's
// name in it calls anybody.
func escapeInline(text string) string {
	text = html.EscapeString(cleanText(text))
	return strings.NewReplacer(`\`, `&#92;`, "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;",
		"|", "&#124;", "~", "&#126;", "@", "&#64;", "://", "&#58;//").Replace(text)
}
