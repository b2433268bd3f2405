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

// maxCommentBytes is the size in bytes after which lists end. GitHub accepts comments of up to 65,536 characters.
const maxCommentBytes = 50_000

// PlanMarkdown returns a plan as a comment for a pull request: a summary, problems, instructions, and folded lists of
// steps and differences. The comment contains no secrets. decisions are those that Build returned with the plan.
func PlanMarkdown(p plan.Plan, diffs []diff.Set, decisions ...decide.Decision) []byte {
	c := &comment{}
	c.addLine("### kubeone plan: cluster %s", escapeInline(p.Cluster))
	c.addLine("")
	c.addLine("**%s**", escapeInline(planSummary(p)))
	found := lastProblems(decisions)
	c.addBullets("Problems", len(found), func(i int) string {
		text := atHost(nameOrID(p.Hosts, found[i].Host), found[i].Text())
		if do := found[i].Remedy(); do != "" {
			text += "; " + do
		}
		return text
	})
	c.addBullets("Action required", len(p.Operator), func(i int) string {
		o := p.Operator[i]
		return atHost(p.Hosts[o.Host], o.Reason()) + ": " + strings.Join(o.Texts(), "; ")
	})
	c.addBullets("Unknown: what would be installed", len(p.Unresolved), func(i int) string { return p.Unresolved[i] })
	c.addStepTable(p)
	c.addDiffs(diffs)
	contacts := slices.Sorted(maps.Keys(p.FirstContacts))
	c.addBullets("Host keys recorded on approval", len(contacts), func(i int) string {
		return nameOrID(p.Hosts, contacts[i]) + " " + p.FirstContacts[contacts[i]]
	})
	c.addBullets("Notes", len(p.Notes), func(i int) string { return p.Notes[i] })
	if digest := p.Digest(); digest != "" && len(p.Steps) > 0 {
		c.addLine("")
		c.addLine("Digest of the plan: `%s`", digest)
	}
	return []byte(c.text.String())
}

// comment is Markdown under construction.
type comment struct{ text strings.Builder }

func (c *comment) addLine(format string, args ...any) { fmt.Fprintf(&c.text, format+"\n", args...) }

// isFull reports whether the comment has no room for another list entry.
func (c *comment) isFull() bool { return c.text.Len() > maxCommentBytes }

// addBullets writes a heading and a list of n entries, or nothing if n is 0. text returns the entries.
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

// addFold writes a section that is folded by default. inside writes its contents.
func (c *comment) addFold(title string, inside func()) {
	c.addLine("")
	c.addLine("<details><summary>%s</summary>", title)
	c.addLine("")
	inside()
	c.addLine("")
	c.addLine("</details>")
}

// addStepTable writes the steps as a table. Hosts with the same steps share rows.
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

// addDiffs writes the differing lines, one block for each file or object.
func (c *comment) addDiffs(sets []diff.Set) {
	if len(sets) == 0 {
		return
	}
	c.addFold("Differences between live (-) and planned (+)", func() {
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

// addBlock writes the lines as a diff block. Its fences are longer than any fence in the lines.
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

// escapeInline escapes a text from a host or manifest so that Markdown shows it as plain text, without markup, links
// and mentions.
func escapeInline(text string) string {
	text = html.EscapeString(cleanText(text))
	return strings.NewReplacer(`\`, `&#92;`, "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;",
		"|", "&#124;", "~", "&#126;", "@", "&#64;", "://", "&#58;//").Replace(text)
}
