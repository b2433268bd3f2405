package view

import (
	"fmt"
	"io"
	"kubeone/internal/cluster/record"
	"kubeone/internal/text/diff"
	"strings"
	"time"
)

// HistoryFormat is the version of HistoryDocument's format.
const HistoryFormat = 1

// HistoryDocument is the history as JSON.
type HistoryDocument struct {
	Format  int          `json:"format"` // HistoryFormat
	Cluster string       `json:"cluster"`
	Runs    []record.Run `json:"runs"` // newest first
}

// HistoryJSON is runs as docs/json.md describes them. Callers leave out what was not asked for.
func HistoryJSON(name string, runs []record.Run) ([]byte, error) {
	return encodeJSON(HistoryDocument{Format: HistoryFormat, Cluster: name, Runs: notNil(runs)}, "history of "+name)
}

// moment is how a point in time is written: not by anybody's own clock, since runs come from several machines.
const moment = "2006-01-02 15:04:05 UTC"

// History writes runs, newest first, a line each, and what failed below it. A run's name begins with its time (UTC).
func History(w io.Writer, s Style, runs []record.Run) {
	out := &page{style: s}
	if len(runs) == 0 {
		out.addLine("No run is remembered.")
		out.flush(w)
		return
	}
	t := &table{head: []string{"RUN", "  TOOK", "STEPS", "RESULT", "WHO", "FOR"}}
	for _, r := range runs {
		t.addRow(
			cell{cleanText(r.ID), plain}, cell{padLeft(tookOf(r), 6), plain},
			cell{padLeft(fmt.Sprintf("%d/%d", stepsDone(r), r.Planned), 5), plain},
			cell{cleanText(string(r.Result)), inkOf(r.Result)}, cell{cleanText(r.Who + "@" + r.From), plain},
			cell{cleanText(strings.Join(r.Routes, ", ")), plain},
		)
	}
	for i, lines := range t.renderLines(s) {
		for _, line := range lines {
			out.addLine(line)
		}
		if i > 0 && runs[i-1].Error != "" {
			out.addParagraph("    ", runs[i-1].Error, dim)
		}
	}
	out.flush(w)
}

// HistoryRun writes one run with its steps, in the order in which they began.
func HistoryRun(w io.Writer, s Style, r record.Run) {
	out := &page{style: s}
	out.addLine(s.paintText(bold, "Run "+cleanText(r.ID)))
	facts := &table{indent: 2}
	for _, fact := range [][2]string{
		{"who", r.Who + "@" + r.From}, {"for", strings.Join(r.Routes, ", ")}, {"began", r.Started.UTC().Format(moment)},
		{"took", tookOf(r)}, {"plan", r.PlanDigest}, {"steps", fmt.Sprintf("%d of %d done", stepsDone(r), r.Planned)},
	} {
		if fact[1] != "" {
			facts.addRow(cell{fact[0], dim}, cell{cleanText(fact[1]), plain})
		}
	}
	facts.addRow(cell{"result", dim}, resultCell(r))
	out.addTable(facts)
	if len(r.Steps) > 0 {
		out.addSpace()
		out.addTable(stepTable(r.Steps))
	} else if why := whyNoSteps(r); why != "" {
		out.addSpace()
		out.addParagraph("", why, plain)
	}
	out.flush(w)
}

// whyNoSteps says why there is nothing to be read about a run's steps.
func whyNoSteps(r record.Run) string {
	switch {
	case r.Result == record.Interrupted:
		return "It was killed before it could say how far it got. Its journal is on " + r.From +
			"; kubeone status shows what is now."
	case r.Result == record.Running:
		return "Its steps are known here when it has ended."
	case r.Planned > 0:
		return "Its steps are not remembered any more."
	}
	return ""
}

func stepTable(steps []record.Step) *table {
	t := &table{indent: 2, head: []string{"STEP", " BEGAN", "  TOOK", "RESULT"}}
	for _, s := range steps {
		began, length := formatDuration(durationOf(s.Began)), formatDuration(durationOf(s.Seconds))
		if s.Result == record.Skipped {
			began, length = "", ""
		}
		if s.Result == record.Running || s.Result == record.Interrupted {
			length = ""
		}
		t.addRow(cell{cleanText(s.ID), plain}, cell{padLeft(began, 6), plain}, cell{padLeft(length, 6), plain},
			cell{string(s.Result), inkOf(s.Result)})
	}
	return t
}

// tookOf is how long a run took; "" of one whose end is not known.
func tookOf(r record.Run) string {
	if r.Finished.IsZero() {
		return ""
	}
	return formatDuration(r.Finished.Sub(r.Started).Round(time.Millisecond))
}

func stepsDone(r record.Run) int {
	n := 0
	for _, s := range r.Steps {
		if s.Result == record.Done {
			n++
		}
	}
	if r.Result == record.Done {
		return r.Planned // also where the steps are not remembered any more
	}
	return n
}

// resultCell is how a run went, and what failed.
func resultCell(r record.Run) cell {
	text := string(r.Result)
	if r.Error != "" {
		text += ": " + r.Error
	}
	return cell{cleanText(text), inkOf(r.Result)}
}

func inkOf(r record.Result) ink {
	switch r {
	case record.Done:
		return green
	case record.Failed:
		return red
	case record.Stopped, record.Interrupted:
		return yellow
	case record.Skipped:
		return dim
	case record.Running:
		return magenta
	}
	return plain
}

// Diff writes which lines differ between what is live and what will be; hosts with the same lines stand together.
// Without any it says so.
func Diff(w io.Writer, s Style, sets []diff.Set) {
	out := &page{style: s}
	out.addLine(s.paintText(bold, "Differences between what is live (-) and what will be (+):"))
	out.addDiffs(sets)
	if len(sets) == 0 {
		out.addSpace()
		out.addParagraph("  ",
			"None that can be shown: no step of the plan changes a file or an object of which both are "+
				"known beforehand.", plain)
	}
	out.addSpace()
	out.flush(w)
}

func (p *page) addDiffs(sets []diff.Set) {
	for _, set := range sets {
		p.addSpace()
		title := "cluster"
		if len(set.Hosts) > 0 {
			title = strings.Join(set.Hosts, ", ")
		}
		p.addParagraph("", title+":", bold)
		for _, c := range set.Changes {
			p.addVerbatim(c)
		}
	}
}

// addVerbatim writes lines as they are: one that is broken would be another one.
func (p *page) addVerbatim(c diff.Change) {
	p.addParagraph("  ", c.Of, plain)
	if c.Unknown != "" {
		p.addParagraph("    ", "not known: "+c.Unknown, yellow)
	}
	for _, line := range c.Lines {
		ink := dim
		switch {
		case strings.HasPrefix(line, "+"):
			ink = green
		case strings.HasPrefix(line, "-"):
			ink = red
		}
		p.addLine("    " + p.style.paintText(ink, strings.TrimRight(cleanText(line), " ")))
	}
}
