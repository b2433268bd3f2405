package view

import (
	"errors"
	"fmt"
	"io"
	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"strings"
	"sync"
	"time"
)

// Terminal is an output for people. It removes everything except printable characters, tabs and newlines, because
// messages can come from hosts or files. It also removes an incomplete character at the end of a write. Only this
// package bypasses it, to write colours and cursor movements around clean text.
type Terminal struct {
	w       io.Writer
	written bool
}

// NewTerminal returns a Terminal that writes to w: a terminal, a file, or a buffer in a test.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Write writes plain text.
func (t *Terminal) Write(piece []byte) (int, error) {
	lines := strings.Split(string(piece), "\n")
	for i, line := range lines {
		columns := strings.Split(line, "\t")
		for n := range columns {
			columns[n] = cleanText(columns[n])
		}
		lines[i] = strings.Join(columns, "\t")
	}
	if _, err := io.WriteString(t.w, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	t.written = t.written || len(piece) > 0
	return len(piece), nil
}

// Written reports whether text has been written.
func (t *Terminal) Written() bool { return t.written }

// cleanWriter returns the writer behind a Terminal, for text that is already clean.
func cleanWriter(w io.Writer) io.Writer {
	if t, ok := w.(*Terminal); ok {
		return t.w
	}
	return w
}

// ErrTerminal means that binary data would be written to a terminal.
var ErrTerminal = errors.New("standard output is a terminal; redirect it to a file or a pipe")

// Binary returns the writer behind a Terminal, for binary data. If that is an actual terminal, it returns ErrTerminal.
func Binary(w io.Writer) (io.Writer, error) {
	if _, _, terminal := terminalSize(w); terminal {
		return nil, ErrTerminal
	}
	return cleanWriter(w), nil
}

// LiveLine is a line on a terminal that is replaced in place. Methods of a nil LiveLine do nothing.
type LiveLine struct {
	w     io.Writer
	dirty bool
}

// NewLiveLine returns a live line on w, or nil if w is not a terminal.
func NewLiveLine(w io.Writer) *LiveLine {
	if _, _, terminal := terminalSize(w); !terminal {
		return nil
	}
	return &LiveLine{w: cleanWriter(w)}
}

// Show replaces the line. An empty text removes it.
func (l *LiveLine) Show(line string) {
	if l == nil || line == "" && !l.dirty {
		return
	}
	_, _ = io.WriteString(l.w, "\r\x1b[K"+cleanText(line))
	l.dirty = line != ""
}

// liveProgress keeps the lines of running steps at the bottom of a terminal and redraws them in place.
type liveProgress struct {
	mu      sync.Mutex
	w       io.Writer
	track   *track
	now     func() time.Time
	drawn   int    // lines of the live region on the screen
	last    string // the live region as drawn
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
	release func() // stops the ticker
}

func newLiveProgress(w io.Writer, s Style, p plan.Plan, verbose bool, now func() time.Time,
	ticks <-chan time.Time) *liveProgress {
	l := &liveProgress{
		w: w, track: newTrack(s, p, verbose), now: now, release: func() {},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.redrawLoop(ticks)
	return l
}

// redrawLoop redraws the live lines at every tick until Close.
func (l *liveProgress) redrawLoop(ticks <-chan time.Time) {
	defer close(l.stopped)
	for {
		select {
		case <-ticks:
			l.mu.Lock()
			l.writeAndDraw(nil)
			l.mu.Unlock()
		case <-l.stop:
			return
		}
	}
}

// Event writes the lines for finished steps above the live lines. It shows the output of hosts only at the next tick,
// so that much output does not slow down the run.
func (l *liveProgress) Event(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Type == apply.Heartbeat {
		return // the live lines already show it
	}
	lines := l.track.recordEvent(e)
	if e.Type != apply.StepOutput || len(lines) > 0 {
		l.writeAndDraw(lines)
	}
}

// Close removes the live lines and waits until no more is drawn.
func (l *liveProgress) Close() {
	l.mu.Lock()
	wasClosed := l.closed
	l.closed = true
	if !wasClosed {
		l.writeAndDraw(l.track.flushSkipped())
		close(l.stop)
		l.release()
	}
	l.mu.Unlock()
	<-l.stopped
}

// writeAndDraw writes the finished lines and, below them, the live lines. It uses a single write.
func (l *liveProgress) writeAndDraw(finished []string) {
	columns, rows := l.screenSize()
	region := ""
	var live []string
	if !l.closed {
		live = l.track.liveLines(l.now(), columns, rows)
	}
	for _, line := range live {
		region += line + "\n"
	}
	if len(finished) == 0 && region == l.last {
		return
	}
	text := ""
	if l.drawn > 0 {
		text = fmt.Sprintf("\x1b[%dA\r\x1b[J", l.drawn) // up, to the first column, erase all below
	}
	for _, line := range finished {
		text += line + "\n"
	}
	_, _ = io.WriteString(cleanWriter(l.w), text+region)
	l.drawn, l.last = len(live), region
}

// screenSize returns the current size of the terminal, which can change during a run. If it is unknown, screenSize
// returns the width in the style and 24 rows.
func (l *liveProgress) screenSize() (columns, rows int) {
	if columns, rows, ok := terminalSize(l.w); ok && columns > 0 && rows > 0 {
		return columns, rows
	}
	return l.track.style.Width, 24
}

// liveLines returns a line for each running step, the longest running first, and a line for the run. To let the cursor
// return to the first of these lines, they must not fill the screen and must not wrap. Excess steps are only counted.
func (t *track) liveLines(now time.Time, columns, rows int) []string {
	if t.began.IsZero() || t.ended {
		return nil
	}
	if columns <= 0 {
		columns = 80
	}
	maxLines := max(rows/2, 3)
	var out []string
	for i, a := range t.running {
		if i == maxLines {
			out = append(out, t.style.paintText(dim,
				t.style.clipText(padRight("", stampColumn)+fmt.Sprintf("and %d more", len(t.running)-maxLines), columns-1)))
			break
		}
		out = append(out, t.activeLine(a, now, columns-1))
	}
	sum := fmt.Sprintf("%d of %d steps done, %s", t.done, t.total, formatSeconds(now.Sub(t.began)))
	if t.failed > 0 {
		sum += fmt.Sprintf(", %d failed", t.failed)
	}
	return append(out, t.style.paintText(bold, t.style.clipText(sum, columns-1)))
}

// activeLine returns a line such as "cp-2  join: etcd member  12s  last output of the host". Its columns are aligned
// with the lines for finished steps.
func (t *track) activeLine(a activeStep, now time.Time, columns int) string {
	text := padRight("", stampColumn) + padRight(a.host, t.hostWidth) + "  " + padRight(a.title, t.titleWidth) + "  " +
		padRight(formatSeconds(now.Sub(a.since)), 5)
	room := columns - textWidth(text) - 2
	if a.line == "" || room < 8 {
		return t.style.clipText(strings.TrimRight(text, " "), columns)
	}
	return text + "  " + t.style.paintText(dim, t.style.clipText(a.line, room))
}
