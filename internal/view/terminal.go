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

// Terminal is an output that people read. It removes everything except printable characters, tabs and newlines, because
// texts may come from hosts or files. Only this package bypasses it, to write colours and cursor movements around clean
// texts. An incomplete character at the end of a write is removed, too.
type Terminal struct {
	w       io.Writer
	written bool
}

// NewTerminal returns a Terminal for a terminal, a file, or a test's buffer.
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

// ErrTerminal means that binary data would go to a terminal.
var ErrTerminal = errors.New("standard output is a terminal; redirect it to a file or a pipe")

// Binary returns the writer behind a Terminal for binary data, or ErrTerminal if it is a terminal.
func Binary(w io.Writer) (io.Writer, error) {
	if _, _, terminal := terminalSize(w); terminal {
		return nil, ErrTerminal
	}
	return cleanWriter(w), nil
}

// LiveLine is a line on a terminal that is replaced in place. The zero value shows nothing.
type LiveLine struct {
	w     io.Writer
	dirty bool
}

// NewLiveLine returns the live line of a writer, or nil if it is not a terminal.
func NewLiveLine(w io.Writer) *LiveLine {
	if _, _, terminal := terminalSize(w); !terminal {
		return nil
	}
	return &LiveLine{w: cleanWriter(w)}
}

// Show replaces the line; an empty one removes it.
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
	release func() // frees the ticker
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

// redrawLoop redraws at every tick until Close.
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

// Event writes the lines of finished steps above the live ones. Output of hosts waits for the next tick, so that it
// does not slow the run down.
func (l *liveProgress) Event(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Type == apply.Heartbeat {
		return // the live lines say it
	}
	lines := l.track.recordEvent(e)
	if e.Type != apply.StepOutput || len(lines) > 0 {
		l.writeAndDraw(lines)
	}
}

// Close removes the live lines and waits until drawing has ended.
func (l *liveProgress) Close() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	if !already {
		l.writeAndDraw(l.track.flushSkipped())
		close(l.stop)
		l.release()
	}
	l.mu.Unlock()
	<-l.stopped
}

// writeAndDraw writes finished lines and the live ones below them, in one write.
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

// screenSize returns the current size of the terminal, which may change; the default is 24 lines.
func (l *liveProgress) screenSize() (columns, rows int) {
	if columns, rows, ok := terminalSize(l.w); ok && columns > 0 && rows > 0 {
		return columns, rows
	}
	return l.track.style.Width, 24
}

// liveLines returns a line for each running step, the longest running first, and a line for the run. They never fill
// the screen, and no line wraps, because the cursor could not return to its place.
func (t *track) liveLines(now time.Time, columns, rows int) []string {
	if t.began.IsZero() || t.ended {
		return nil
	}
	if columns <= 0 {
		columns = 80
	}
	most := max(rows/2, 3)
	var out []string
	for i, a := range t.running {
		if i == most {
			out = append(out, t.style.paintText(dim,
				t.style.clipText(padRight("", stampColumn)+fmt.Sprintf("and %d more", len(t.running)-most), columns-1)))
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

// activeLine returns " cp-2 join: etcd member 12s last output of the host", aligned with the finished lines.
func (t *track) activeLine(a activeStep, now time.Time, columns int) string {
	text := padRight("", stampColumn) + padRight(a.host, t.host) + "  " + padRight(a.title, t.title) + "  " +
		padRight(formatSeconds(now.Sub(a.since)), 5)
	room := columns - textWidth(text) - 2
	if a.line == "" || room < 8 {
		return t.style.clipText(strings.TrimRight(text, " "), columns)
	}
	return text + "  " + t.style.paintText(dim, t.style.clipText(a.line, room))
}
