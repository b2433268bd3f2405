package view

import (
	"fmt"
	"io"
	"kubeone/internal/cluster/record"
	"kubeone/internal/text/diff"
	"strings"
	"time"
)

// HistoryFormat is the version of HistoryDocument.
const HistoryFormat = 1

// HistoryDocument is the JSON that "history" prints.
type HistoryDocument struct {
	Format  int          `json:"format"` // HistoryFormat
	Cluster string       `json:"cluster"`
	Runs    []record.Run `json:"runs"` // newest first
}

// HistoryJSON encodes the runs as a HistoryDocument, described in docs/json.md.
func HistoryJSON(name string, runs []record.Run) ([]byte, error) {
	return encodeJSON(HistoryDocument{Format: HistoryFormat, Cluster: name, Runs: notNil(runs)}, "history of "+name)
}

// historyTimeFormat formats times in UTC, because runs come from several machines.
const historyTimeFormat = "2006-01-02 15:04:05 UTC"

// History writes one line for each run, newest first, with its error on the next line.
func History(w io.Writer, s Style, runs []record.Run) {
	out := &page{style: s}
	if len(runs) == 0 {
		out.addLine("No runs recorded.")
		out.flush(w)
		return
	}
	t := &table{head: []string{"RUN", "  TOOK", "STEPS", "RESULT", "WHO", "FOR"}}
	for _, r := range runs {
		t.addRow(
			cell{cleanText(r.ID), plain}, cell{padLeft(runDuration(r), 6), plain},
			cell{padLeft(fmt.Sprintf("%d/%d", stepsDone(r), r.Planned), 5), plain},
			cell{cleanText(string(r.Result)), resultInk(r.Result)}, cell{cleanText(r.Who + "@" + r.From), plain},
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

// HistoryRun writes the details of one run and its steps, in the order in which the steps began.
func HistoryRun(w io.Writer, s Style, r record.Run) {
	out := &page{style: s}
	out.addLine(s.paintText(bold, "Run "+cleanText(r.ID)))
	facts := &table{indent: 2}
	for _, fact := range [][2]string{
		{"who", r.Who + "@" + r.From}, {"for", strings.Join(r.Routes, ", ")},
		{"began", r.Started.UTC().Format(historyTimeFormat)},
		{"took", runDuration(r)}, {"plan", r.PlanDigest}, {"steps", fmt.Sprintf("%d of %d done", stepsDone(r), r.Planned)},
	} {
		if fact[1] != "" {
			facts.addRow(cell{fact[0], dim}, cell{cleanText(fact[1]), plain})
		}
	}
	facts.addRow(cell{"result", dim}, resultCell(r))
	out.addTable(facts)
	if len(r.Steps) > 0 {
		out.addSpace()
		out.addTable(newStepTable(r.Steps))
	} else if why := whyNoSteps(r); why != "" {
		out.addSpace()
		out.addParagraph("", why, plain)
	}
	out.flush(w)
}

// whyNoSteps explains why a run has no recorded steps.
func whyNoSteps(r record.Run) string {
	switch {
	case r.Result == record.Interrupted:
		return "The run was killed before it recorded its steps. Its journal is on " + r.From +
			"; kubeone status shows the current state."
	case r.Result == record.Running:
		return "The steps are recorded when the run ends."
	case r.Planned > 0:
		return "The steps are no longer recorded."
	}
	return ""
}

func newStepTable(steps []record.Step) *table {
	t := &table{indent: 2, head: []string{"STEP", " BEGAN", "  TOOK", "RESULT"}}
	for _, s := range steps {
		began, length := formatDuration(secondsToDuration(s.Began)), formatDuration(secondsToDuration(s.Seconds))
		if s.Result == record.Skipped {
			began, length = "", ""
		}
		if s.Result == record.Running || s.Result == record.Interrupted {
			length = ""
		}
		t.addRow(cell{cleanText(s.ID), plain}, cell{padLeft(began, 6), plain}, cell{padLeft(length, 6), plain},
			cell{string(s.Result), resultInk(s.Result)})
	}
	return t
}

// runDuration returns the duration of a run, or "" if its end is unknown.
func runDuration(r record.Run) string {
	if r.Finished.IsZero() {
		return ""
	}
	return formatDuration(r.Finished.Sub(r.Started).Round(time.Millisecond))
}

// stepsDone returns the number of steps that succeeded.
func stepsDone(r record.Run) int {
	n := 0
	for _, s := range r.Steps {
		if s.Result == record.Done {
			n++
		}
	}
	if r.Result == record.Done {
		return r.Planned // all succeeded, even if they are no longer recorded
	}
	return n
}

// resultCell returns the result of a run and its error, if any.
func resultCell(r record.Run) cell {
	text := string(r.Result)
	if r.Error != "" {
		text += ": " + r.Error
	}
	return cell{cleanText(text), resultInk(r.Result)}
}

func resultInk(r record.Result) ink {
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

// Diff writes the lines that differ between live and planned contents, for each set of hosts and for the cluster. If
// there are no sets, it writes that there is nothing to show.
func Diff(w io.Writer, s Style, sets []diff.Set) {
	out := &page{style: s}
	out.addLine(s.paintText(bold, "Differences between live (-) and planned (+):"))
	out.addDiffs(sets)
	if len(sets) == 0 {
		out.addSpace()
		out.addParagraph("  ",
			"None to show: no step changes a file or an object whose live and planned contents are both "+
				"known.", plain)
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

// addVerbatim writes the lines of a change without wrapping them, because a wrapped line would look like two lines.
func (p *page) addVerbatim(c diff.Change) {
	p.addParagraph("  ", c.Of, plain)
	if c.Unknown != "" {
		p.addParagraph("    ", "not known: "+c.Unknown, yellow)
	}
	for _, line := range c.Lines {
		color := dim
		switch {
		case strings.HasPrefix(line, "+"):
			color = green
		case strings.HasPrefix(line, "-"):
			color = red
		}
		p.addLine("    " + p.style.paintText(color, strings.TrimRight(cleanText(line), " ")))
	}
}
