package view

import (
	"encoding/json"
	"fmt"
	"io"
	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
	"slices"
	"strings"
	"sync"
	"time"
)

// Progress shows a run in progress. Its methods are safe for concurrent use.
type Progress interface {
	// Event shows one event. Output that cannot be written is lost without an error.
	Event(apply.Event)
	// Close ends the display and leaves the cursor below it. It can be called more than once.
	Close()
}

// NewProgress returns a Progress that shows a run of the plan. On a live terminal, it keeps one line for each running
// step below the lines of finished steps. On other writers, it writes a line for each finished step, and heartbeats.
// verbose adds the output of hosts. The caller must call Close.
func NewProgress(w io.Writer, s Style, p plan.Plan, verbose bool) Progress {
	if !s.Live {
		return &lineProgress{w: w, track: newTrack(s, p, verbose)}
	}
	ticker := time.NewTicker(redrawInterval)
	live := newLiveProgress(w, s, p, verbose, time.Now, ticker.C)
	live.release = ticker.Stop
	return live
}

// redrawInterval is the interval between redraws: short enough to show the output of hosts, and long enough for a slow
// connection.
const redrawInterval = 200 * time.Millisecond

// lineProgress writes lines and never moves the cursor.
type lineProgress struct {
	mu    sync.Mutex
	w     io.Writer
	track *track
}

// Event writes the lines of the event, if any.
func (l *lineProgress) Event(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writeLines(l.w, l.track.recordEvent(e))
}

// Close writes the skipped steps that have not been written yet.
func (l *lineProgress) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	writeLines(l.w, l.track.flushSkipped())
}

func writeLines(w io.Writer, lines []string) {
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	if text != "" {
		_, _ = io.WriteString(cleanWriter(w), text)
	}
}

// NewJSONProgress returns a Progress that writes each event as a line of JSON, described in docs/json.md.
func NewJSONProgress(w io.Writer) Progress {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &jsonProgress{encoder: e}
}

type jsonProgress struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// Event writes the event.
func (j *jsonProgress) Event(e apply.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.encoder.Encode(e)
}

// Close does nothing, because Event writes without a delay.
func (j *jsonProgress) Close() {}

// track converts the events of a run to lines. It has no clock and uses the times in the events.
type track struct {
	style      Style
	plan       plan.Plan
	verbose    bool
	hostWidth  int // columns of the longest host name, at most maxHostColumn
	titleWidth int // columns of the longest title, at most maxTitleColumn

	began         time.Time
	running       []activeStep // in the order in which they started
	waiting       []string     // skipped steps that have not been written yet
	waitingSince  time.Time
	done, total   int
	failed, skips int
	ended         bool
}

// active is a step that is running.
type activeStep struct {
	id, host, title string
	since           time.Time
	line            string // the last line of output from the host
}

// Maximum widths of the columns for names and titles. A longer text moves the rest of its line to the right.
const (
	maxHostColumn  = 24
	maxTitleColumn = 40
)

// onCluster replaces the host name for steps that go through the API.
const clusterLabel = "cluster"

func newTrack(s Style, p plan.Plan, verbose bool) *track {
	t := &track{style: s, plan: p, verbose: verbose, total: len(p.Steps)}
	for _, step := range p.Steps {
		t.hostWidth = max(t.hostWidth, textWidth(hostOrCluster(p.Hosts[step.Host])))
		t.titleWidth = max(t.titleWidth, textWidth(cleanText(step.Title)))
	}
	t.hostWidth, t.titleWidth = min(t.hostWidth, maxHostColumn), min(t.titleWidth, maxTitleColumn)
	return t
}

func hostOrCluster(name string) string {
	if name == "" {
		return clusterLabel
	}
	return cleanText(name)
}

// recordEvent records an event and returns the lines to write for it.
func (t *track) recordEvent(e apply.Event) []string {
	if t.began.IsZero() {
		t.began = e.Time
	}
	if e.Type == apply.StepSkipped {
		t.holdSkipped(e)
		return nil
	}
	return append(t.flushSkipped(), t.eventLines(e)...)
}

func (t *track) eventLines(e apply.Event) []string {
	switch e.Type {
	case apply.RunStarted:
		t.total = e.Total
		return []string{t.style.paintText(dim, "Run "+cleanText(e.RunID)+": "+phrase.Count(e.Total, "step"))}
	case apply.StepStarted:
		t.running = append(t.running,
			activeStep{id: e.Step, host: hostOrCluster(e.Host), title: cleanText(e.Title), since: e.Time})
		return t.whenVerbose(e, "started")
	case apply.StepOutput:
		return t.recordOutput(e)
	case apply.StepDone:
		t.endStep(e.Step)
		t.done = max(t.done+1, e.Done)
		return []string{t.stepLine(e, t.style.paintText(green, "done")+" ("+formatDuration(secondsToDuration(e.Seconds))+")")}
	case apply.StepFailed:
		t.endStep(e.Step)
		t.failed++
		return []string{t.stepLine(e,
			t.style.paintText(red, "failed")+" ("+formatDuration(secondsToDuration(e.Seconds))+"): "+firstErrorLine(e))}
	case apply.Warning:
		return []string{t.timeStamp(e.Time) + t.hostName(e.Host) + t.style.paintText(yellow, "warning: ") +
			cleanText(e.Line)}
	case apply.Heartbeat:
		return t.heartbeatLine(e)
	case apply.RunFinished:
		t.ended = true
		return t.summaryLine(e)
	}
	return nil
}

// stepLine returns a line about a step, such as "  12.3s  cp-2  join: etcd member  done (4.1s)".
func (t *track) stepLine(e apply.Event, what string) string {
	return t.timeStamp(e.Time) + t.hostName(e.Host) + padRight(cleanText(e.Title), t.titleWidth) + "  " + what
}

// stampColumn is the width of the time column, including the gap after it.
const stampColumn = 9

func (t *track) timeStamp(at time.Time) string {
	return t.style.paintText(dim, padLeft(formatDuration(at.Sub(t.began)), stampColumn-gap)) + strings.Repeat(" ", gap)
}

func (t *track) hostName(host string) string {
	return padRight(hostOrCluster(host), t.hostWidth) + "  "
}

func (t *track) whenVerbose(e apply.Event, what string) []string {
	if !t.verbose {
		return nil
	}
	return []string{t.stepLine(e, t.style.paintText(dim, what))}
}

// recordOutput records the last line of output from a host. If verbose, it also returns the line to write.
func (t *track) recordOutput(e apply.Event) []string {
	line := cleanText(e.Line)
	for i := range t.running {
		if t.running[i].id == e.Step {
			t.running[i].line = line
		}
	}
	if !t.verbose {
		return nil
	}
	return []string{t.timeStamp(e.Time) + t.hostName(e.Host) + t.style.paintText(dim, "| "+line)}
}

func (t *track) endStep(id string) {
	t.running = slices.DeleteFunc(t.running, func(a activeStep) bool { return a.id == id })
}

// holdSkipped delays the line about a skipped step. Many steps are skipped at the same time, and they share one line.
func (t *track) holdSkipped(e apply.Event) {
	t.waiting = append(t.waiting, hostOrCluster(e.Host)+" "+cleanText(e.Title))
	t.waitingSince = e.Time
	t.skips++
}

// flushSkipped returns the line about the skipped steps that have not been written yet, or nil if there are none.
func (t *track) flushSkipped() []string {
	if len(t.waiting) == 0 {
		return nil
	}
	what := phrase.Count(len(t.waiting), "step") + ": "
	if t.verbose {
		what += joinNames(t.waiting, len(t.waiting))
	} else {
		what += joinNames(t.waiting, 3)
	}
	t.waiting = nil
	return []string{t.timeStamp(t.waitingSince) + t.style.paintText(yellow, "skipped ") + what}
}

// firstErrorLine returns the first line of the error of a failed step, without the host and title.
func firstErrorLine(e apply.Event) string {
	text, _, _ := strings.Cut(e.Error, "\n")
	host := e.Host
	if host == "" {
		host = clusterLabel
	}
	text = strings.TrimPrefix(text, host+": "+e.Title+": ")
	return cleanText(strings.TrimPrefix(text, host+": "))
}

// heartbeatLine lists the running steps, the longest running first.
func (t *track) heartbeatLine(e apply.Event) []string {
	if len(t.running) == 0 {
		return nil
	}
	names := make([]string, 0, len(t.running))
	for _, a := range t.running {
		names = append(names, fmt.Sprintf("%s %s (%s)", a.host, a.title, formatSeconds(e.Time.Sub(a.since))))
	}
	return []string{
		fmt.Sprintf("%s%s still running: %s; %d of %d steps done", t.timeStamp(e.Time), t.style.ellipsisText(),
			joinNames(names, 4),
			t.done, t.total),
	}
}

// summaryLine summarizes the run without its error, which the caller prints.
func (t *track) summaryLine(e apply.Event) []string {
	after := formatDuration(secondsToDuration(e.Seconds))
	if e.Error == "" {
		return []string{t.style.paintText(green, "Done: ") + phrase.Count(t.done, "step") + " in " + after + "."}
	}
	how, rest := t.style.paintText(red, "Failed after "), fmt.Sprintf("%d of %d steps done", t.done, t.total)
	if t.failed == 0 {
		how = t.style.paintText(yellow, "Stopped after ")
	} else {
		rest += fmt.Sprintf(", %d failed", t.failed)
	}
	if t.skips > 0 {
		rest += fmt.Sprintf(", %d skipped", t.skips)
	}
	lines := []string{how + after + ": " + rest + "."}
	if len(t.running) > 0 {
		lines = append(lines,
			"Still running: "+joinNames(t.hostNames(), 8)+". The next apply checks the result.")
	}
	return lines
}

func (t *track) hostNames() []string {
	var out []string
	for _, a := range t.running {
		out = append(out, a.host+" "+a.title)
	}
	return out
}
