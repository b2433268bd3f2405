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
	c.line("### kubeone plan: cluster %s", inline(p.Cluster))
	c.line("")
	c.line("**%s**", inline(verdict(p)))
	found := problems(decisions)
	c.bullets("Problems", len(found), func(i int) string {
		text := at(nameOf(p.Hosts, found[i].Host), found[i].What())
		if do := found[i].Do(); do != "" {
			text += "; " + do
		}
		return text
	})
	c.bullets("You must act", len(p.Operator), func(i int) string {
		o := p.Operator[i]
		return at(p.Hosts[o.Host], o.Reason()) + ": " + strings.Join(o.Texts(), "; ")
	})
	c.bullets("Not known: what would be installed", len(p.Unresolved), func(i int) string { return p.Unresolved[i] })
	c.steps(p)
	c.diffs(diffs)
	contacts := slices.Sorted(maps.Keys(p.FirstContacts))
	c.bullets("Host keys that approving the plan records", len(contacts), func(i int) string {
		return nameOf(p.Hosts, contacts[i]) + " " + p.FirstContacts[contacts[i]]
	})
	c.bullets("Notes", len(p.Notes), func(i int) string { return p.Notes[i] })
	if digest := p.Digest(); digest != "" && len(p.Steps) > 0 {
		c.line("")
		c.line("Digest of the plan: `%s`", digest)
	}
	return []byte(c.text.String())
}

// comment is Markdown that is being written.
type comment struct{ text strings.Builder }

func (c *comment) line(format string, args ...any) { fmt.Fprintf(&c.text, format+"\n", args...) }

// full reports whether what is of any length must end here.
func (c *comment) full() bool { return c.text.Len() > longestComment }

// bullets writes a list below a heading, if it has elements.
func (c *comment) bullets(heading string, n int, text func(int) string) {
	if n == 0 {
		return
	}
	c.line("")
	c.line("**%s**", heading)
	c.line("")
	for i := range n {
		if c.full() {
			c.line("- and %d more", n-i)
			return
		}
		c.line("- %s", inline(text(i)))
	}
}

// fold writes what is shown on a click.
func (c *comment) fold(title string, inside func()) {
	c.line("")
	c.line("<details><summary>%s</summary>", title)
	c.line("")
	inside()
	c.line("")
	c.line("</details>")
}

// steps writes a table of the steps; hosts with the same steps are one row each step.
func (c *comment) steps(p plan.Plan) {
	if len(p.Steps) == 0 {
		return
	}
	c.fold(phrase.Count(len(p.Steps), "step"), func() {
		c.line("| | host | step | why | risk |")
		c.line("|---|---|---|---|---|")
		for _, g := range groupSteps(p, true) {
			for _, s := range g.steps {
				if c.full() {
					c.line("| | | and more: run kubeone plan | | |")
					return
				}
				c.line("| `%s` | %s | %s | %s | %s |", s.Action, inline(g.title()), inline(s.Title), inline(s.Reason),
					inline(string(s.Risk)))
			}
		}
	})
}

// diffs writes which lines differ, of each file or object in a block of its own.
func (c *comment) diffs(sets []diff.Set) {
	if len(sets) == 0 {
		return
	}
	c.fold("Differences between what is live (-) and what will be (+)", func() {
		for _, set := range sets {
			where := "cluster"
			if len(set.Hosts) > 0 {
				where = strings.Join(set.Hosts, ", ")
			}
			for _, change := range set.Changes {
				if c.full() {
					c.line("And more: run kubeone plan --diff.")
					return
				}
				c.line("%s: %s", inline(where), inline(change.Of))
				if change.Unknown != "" {
					c.line("not known: %s", inline(change.Unknown))
				}
				c.block(change.Lines)
			}
		}
	})
}

// block writes lines as they are, between fences that none of them is.
func (c *comment) block(lines []string) {
	if len(lines) == 0 {
		return
	}
	fence := "~~~"
	for _, line := range lines {
		for strings.Contains(line, fence) {
			fence += "~"
		}
	}
	c.line("")
	c.line("%sdiff", fence)
	for _, line := range lines {
		c.line("%s", strings.TrimRight(clean(line), " "))
	}
	c.line("%s", fence)
	c.line("")
}

// inline is a text of a host or a manifest that is nothing but text in Markdown: no markup, no link, and nobody's name
// in it calls anybody.
func inline(text string) string {
	text = html.EscapeString(clean(text))
	return strings.NewReplacer(`\`, `&#92;`, "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;",
		"|", "&#124;", "~", "&#126;", "@", "&#64;", "://", "&#58;//").Replace(text)
}
