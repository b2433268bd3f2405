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

// Terminal is where a person reads. What is written to it may hold text from anywhere (an error with what a host
// printed, a name out of a backup): everything but printable characters, tabs and ends of lines is left out. This
// package alone writes colours and cursor movements past it, with texts in between that it has cleaned. An incomplete
// character at the end of a piece is left out, too.
type Terminal struct {
	w       io.Writer
	written bool
}

// NewTerminal makes a Terminal of what is behind it: a terminal, a file, or a test's buffer.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Write writes a piece of plain text.
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

// cleanWriter is what a Terminal writes to, for text that is clean.
func cleanWriter(w io.Writer) io.Writer {
	if t, ok := w.(*Terminal); ok {
		return t.w
	}
	return w
}

// ErrTerminal means that a person would see what is not for reading.
var ErrTerminal = errors.New("standard output is a terminal; redirect it to a file or a pipe")

// Binary is what a Terminal writes to, for content that is no text. It is ErrTerminal where a person reads there.
func Binary(w io.Writer) (io.Writer, error) {
	if _, _, terminal := terminalSize(w); terminal {
		return nil, ErrTerminal
	}
	return cleanWriter(w), nil
}

// LiveLine shows a line in place of the one before it, on a terminal. The zero value shows nothing.
type LiveLine struct {
	w     io.Writer
	dirty bool
}

// LiveLineOn is the live line of a writer; nil where no terminal is behind it.
func LiveLineOn(w io.Writer) *LiveLine {
	if _, _, terminal := terminalSize(w); !terminal {
		return nil
	}
	return &LiveLine{w: cleanWriter(w)}
}

// Show shows the line; an empty one takes the last away.
func (l *LiveLine) Show(line string) {
	if l == nil || line == "" && !l.dirty {
		return
	}
	_, _ = io.WriteString(l.w, "\r\x1b[K"+cleanText(line))
	l.dirty = line != ""
}

// liveProgress keeps lines of what is running at the bottom of a terminal and redraws them in place.
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

func newLive(w io.Writer, s Style, p plan.Plan, verbose bool, now func() time.Time,
	ticks <-chan time.Time) *liveProgress {
	l := &liveProgress{
		w: w, track: newTrack(s, p, verbose), now: now, release: func() {},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.redrawLoop(ticks)
	return l
}

// redrawLoop draws at every tick, until Close.
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

// Event writes the lines of what ended above the live ones. A host's output waits for the next tick, so that a chatty
// host does not slow the run down.
func (l *liveProgress) Event(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Type == apply.Heartbeat {
		return // the live lines say it
	}
	lines := l.track.noteEvent(e)
	if e.Type != apply.StepOutput || len(lines) > 0 {
		l.writeAndDraw(lines)
	}
}

// Close takes the live lines away and waits until nothing is drawn any more.
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

// writeAndDraw writes finished lines and draws the live ones below them, in one write.
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

// screenSize is the terminal's size now, since people resize windows; a terminal that does not tell has 24 lines.
func (l *liveProgress) screenSize() (columns, rows int) {
	if columns, rows, ok := terminalSize(l.w); ok && columns > 0 && rows > 0 {
		return columns, rows
	}
	return l.track.style.Width, 24
}

// liveLines is the live region of a run that is going on: a line for each running step, the longest running first, and
// a line for the whole run. It never fills the screen, and no line is broken by the terminal, since the cursor could
// not find its way back.
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

// activeLine is "  cp-2  join: etcd member  12s  what the host printed last", with its columns under those of the
// finished lines.
func (t *track) activeLine(a active, now time.Time, columns int) string {
	text := padRight("", stampColumn) + padRight(a.host, t.host) + "  " + padRight(a.title, t.title) + "  " +
		padRight(formatSeconds(now.Sub(a.since)), 5)
	room := columns - textWidth(text) - 2
	if a.line == "" || room < 8 {
		return t.style.clipText(strings.TrimRight(text, " "), columns)
	}
	return text + "  " + t.style.paintText(dim, t.style.clipText(a.line, room))
}
