package view

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
)

// Progress shows a run while it goes on. Its methods may be called from several goroutines at a time.
type Progress interface {
	// Event shows one event. It does not fail: what cannot be written is lost.
	Event(apply.Event)
	// Close ends the display and leaves the cursor below it. It may be called more than once.
	Close()
}

// NewProgress shows a run of the plan: on a live terminal one line for each step that is running, redrawn in place
// below the lines of those that ended; elsewhere a line for each step that ended, and heartbeats. Verbose adds
// what hosts print.
func NewProgress(w io.Writer, s Style, p plan.Plan, verbose bool) Progress {
	if !s.Live {
		return &lineProgress{w: w, track: newTrack(s, p, verbose)}
	}
	ticker := time.NewTicker(redrawEvery)
	live := newLive(w, s, p, verbose, time.Now, ticker.C)
	live.release = ticker.Stop
	return live
}

// redrawEvery is how often the live lines are drawn again: often enough for what hosts print, seldom enough for a slow
// line.
const redrawEvery = 200 * time.Millisecond

// lineProgress writes lines and never moves the cursor.
type lineProgress struct {
	mu    sync.Mutex
	w     io.Writer
	track *track
}

// Event writes the event's lines, if it has any.
func (l *lineProgress) Event(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writeLines(l.w, l.track.note(e))
}

// Close writes what was held back.
func (l *lineProgress) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	writeLines(l.w, l.track.flush())
}

func writeLines(w io.Writer, lines []string) {
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	if text != "" {
		_, _ = io.WriteString(behind(w), text)
	}
}

// NewJSONProgress writes each event as one line of JSON, as docs/json.md describes it.
func NewJSONProgress(w io.Writer) Progress {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &jsonProgress{encoder: e}
}

type jsonProgress struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// Event writes the event's line.
func (j *jsonProgress) Event(e apply.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.encoder.Encode(e)
}

// Close does nothing: every line was written at once.
func (j *jsonProgress) Close() {}
