package view

import (
	"errors"
	"io"
	"strings"
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
			columns[n] = clean(columns[n])
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

// behind is what a Terminal writes to, for text that is clean.
func behind(w io.Writer) io.Writer {
	if t, ok := w.(*Terminal); ok {
		return t.w
	}
	return w
}

// ErrTerminal means that a person would see what is not for reading.
var ErrTerminal = errors.New("standard output is a terminal; redirect it to a file or a pipe")

// Binary is what a Terminal writes to, for content that is no text. It is ErrTerminal where a person reads there.
func Binary(w io.Writer) (io.Writer, error) {
	if _, _, terminal := size(w); terminal {
		return nil, ErrTerminal
	}
	return behind(w), nil
}

// LiveLine shows a line in place of the one before it, on a terminal. The zero value shows nothing.
type LiveLine struct {
	w     io.Writer
	dirty bool
}

// LiveLineOn is the live line of a writer; nil where no terminal is behind it.
func LiveLineOn(w io.Writer) *LiveLine {
	if _, _, terminal := size(w); !terminal {
		return nil
	}
	return &LiveLine{w: behind(w)}
}

// Show shows the line; an empty one takes the last away.
func (l *LiveLine) Show(line string) {
	if l == nil || line == "" && !l.dirty {
		return
	}
	_, _ = io.WriteString(l.w, "\r\x1b[K"+clean(line))
	l.dirty = line != ""
}
