// Package view is what a person or a program reads: plan, progress, status and diagnostics, each as text and as JSON.
//
// Every text is a pure function of plain values and a Style: equal inputs give equal bytes. Text that came from
// elsewhere (hosts, manifests, error messages) is stripped of control characters before it reaches a terminal. A text
// that cannot be written is lost without an error, because nothing the program does may depend on who reads it. The
// JSON documents are versioned and described in docs/json.md.
package view

import (
	"io"
	"strings"
)

// Verbosity is how much a reader wants to see.
type Verbosity int

// The verbosities.
const (
	Normal  Verbosity = iota // what is needed to say yes or no
	Verbose                  // every change of every step
)

// page collects a text and is written at once, so that texts of several writers do not mix.
type page struct {
	strings.Builder
	style Style
}

// line adds one line; an empty text is a blank line.
func (p *page) line(text string) {
	p.WriteString(strings.TrimRight(text, " "))
	p.WriteByte('\n')
}

// para adds a text broken into lines at the style's width. The first line begins with lead, the others are indented as
// far. lead is not counted by its colours, only by its width.
func (p *page) para(lead, text string, as ink) {
	indent := width(lead)
	for i, line := range wrap(clean(text), p.style.room(indent)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		p.line(lead + p.style.paint(as, line))
	}
}

// space separates what follows from what stands above by one blank line.
func (p *page) space() {
	if p.Len() > 0 && !strings.HasSuffix(p.String(), "\n\n") {
		p.line("")
	}
}

// heading begins a section.
func (p *page) heading(title string) {
	p.space()
	p.line(p.style.paint(bold, clean(title)))
}

func (p *page) flush(w io.Writer) { _, _ = io.WriteString(behind(w), p.String()) }
