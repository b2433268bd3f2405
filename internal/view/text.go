// Package view is what a person or a program reads: plan, progress, status and diagnostics, each as text and as JSON.
//
// Every text is a pure function of plain values and a Style: equal inputs give equal bytes. Text that came from
// elsewhere (hosts, manifests, error messages) is stripped of control characters before it reaches a terminal. A text
// that cannot be written is lost without an error, because nothing the program does may depend on who reads it. The
// JSON documents are versioned and described in docs/json.md.
package view

import (
	"fmt"
	"golang.org/x/term"
	"io"
	"kubeone/internal/model/problem"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// cleanText makes a text from elsewhere harmless for a terminal: one line, without escape sequences, other control
// characters, or characters that change the direction of writing.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, escape.ReplaceAllString(text, ""))
}

// escape matches the escape sequences that programs use for colours, cursor movements and titles.
var escape = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[\x20-\x2f]*[\x40-\x7e]|\][^\x07\x1b]*(\x07|\x1b\\)?|[\x40-\x5f])`)

// textWidth is how many columns a text takes, escape sequences not counted.
func textWidth(text string) int { return utf8.RuneCountInString(escape.ReplaceAllString(text, "")) }

// padRight fills a text with blanks up to n columns.
func padRight(text string, n int) string {
	if missing := n - textWidth(text); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// padLeft fills a text with blanks on its left up to n columns.
func padLeft(text string, n int) string {
	if missing := n - textWidth(text); missing > 0 {
		return strings.Repeat(" ", missing) + text
	}
	return text
}

// clipText cuts a text without escape sequences to n columns.
func (s Style) clipText(text string, n int) string {
	if textWidth(text) <= n {
		return text
	}
	runes, end := []rune(text), s.ellipsisText()
	if keep := n - textWidth(end); keep > 0 {
		return string(runes[:keep]) + end
	}
	return string(runes[:max(n, 0)])
}

// wrapText breaks a text between words into lines of at most n columns; 0 does not break. A longer word has its own
// line.
func wrapText(text string, n int) []string {
	if n <= 0 || textWidth(text) <= n {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) <= n:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// joinNames writes names as a sentence has them, and only the first most of them.
func joinNames(names []string, most int) string { return problem.List(problem.Some(names, most)) }

// formatDuration writes how long something took, as short as its reader needs it: "4.1s", "3m12s", "1h05m".
func formatDuration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 100*time.Second-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// formatSeconds is took in full seconds, for times that count while somebody looks on.
func formatSeconds(d time.Duration) string {
	if d = max(d, 0); d < 100*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return formatDuration(d)
}

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Days is how many full days are left until a moment; negative when it is past.
func Days(from, to time.Time) int {
	d := to.Sub(from)
	if d < 0 {
		return -int(-d/(24*time.Hour)) - 1
	}
	return int(d / (24 * time.Hour))
}

// atHost is a sentence about a host: its name stands before it, unless the sentence begins with it.
func atHost(name, sentence string) string {
	if name == "" || strings.HasPrefix(sentence, name+":") || strings.HasPrefix(sentence, name+" ") {
		return sentence
	}
	return name + ": " + sentence
}

// nameOf is a host's display name, else its ID.
func nameOf(names map[string]string, id string) string {
	if name := names[id]; name != "" {
		return name
	}
	return id
}

// Style is how text may look where it goes. The zero value is plain ASCII without colours, in lines of any length.
type Style struct {
	Color, Unicode bool
	Width          int  // columns; 0: lines are not broken
	Live           bool // a terminal with a cursor that can be moved
}

// StyleFor returns the style for what is written to w. Only a terminal that is not dumb gets colours, a width and live
// lines; CI takes the live lines away. NO_COLOR (https://no-color.org) takes the colours away, CLICOLOR_FORCE or
// FORCE_COLOR gives them to anything else; COLUMNS overrules the terminal's own width. Other characters than ASCII need
// a UTF-8 locale.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	s := Style{Unicode: utf8Locale(getenv)}
	columns, _, terminal := terminalSize(w)
	if terminal && getenv("TERM") != "dumb" {
		s.Color, s.Live, s.Width = true, !set(getenv("CI")), columns
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 && terminal {
		s.Width = n
	}
	s.Color = s.Color || set(getenv("CLICOLOR_FORCE")) || set(getenv("FORCE_COLOR"))
	s.Color = s.Color && getenv("NO_COLOR") == ""
	return s
}

func set(value string) bool { return value != "" && value != "0" && value != "false" }

// utf8Locale looks at the variables in the order in which POSIX gives them precedence.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// terminalSize is the size of the terminal behind w in characters, and whether there is one.
func terminalSize(w io.Writer) (columns, rows int, terminal bool) {
	file, ok := cleanWriter(w).(*os.File)
	if !ok {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(file.Fd())) // #nosec G115 -- a file descriptor is small
	return columns, rows, err == nil
}

// ink is the parameter of the escape sequence that sets a colour (ECMA-48, SGR); empty is the terminal's own.
type ink string

const (
	plain   ink = ""
	bold    ink = "1"
	dim     ink = "2"
	red     ink = "31"
	green   ink = "32"
	yellow  ink = "33"
	magenta ink = "35"
)

// paintText colours a text where the style allows it.
func (s Style) paintText(as ink, text string) string {
	if !s.Color || as == plain || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// pickText is the first text where the style has Unicode, else the second, which is ASCII.
func (s Style) pickText(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

func (s Style) ellipsisText() string { return s.pickText("…", "...") }

// remainingWidth is how many columns are left beside an indentation; 0 is any number. Where hardly any is left, lines
// are not broken, which reads better than one word a line.
func (s Style) remainingWidth(indent int) int {
	const least = 24
	if s.Width == 0 || s.Width-indent < least {
		return 0
	}
	return s.Width - indent
}

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

// addLine adds one line; an empty text is a blank line.
func (p *page) addLine(text string) {
	p.WriteString(strings.TrimRight(text, " "))
	p.WriteByte('\n')
}

// addParagraph adds a text broken into lines at the style's width. The first line begins with lead, the others are
// indented as far. lead is not counted by its colours, only by its width.
func (p *page) addParagraph(lead, text string, as ink) {
	indent := textWidth(lead)
	for i, line := range wrapText(cleanText(text), p.style.remainingWidth(indent)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		p.addLine(lead + p.style.paintText(as, line))
	}
}

// addSpace separates what follows from what stands above by one blank line.
func (p *page) addSpace() {
	if p.Len() > 0 && !strings.HasSuffix(p.String(), "\n\n") {
		p.addLine("")
	}
}

// addHeading begins a section.
func (p *page) addHeading(title string) {
	p.addSpace()
	p.addLine(p.style.paintText(bold, cleanText(title)))
}

func (p *page) flush(w io.Writer) { _, _ = io.WriteString(cleanWriter(w), p.String()) }
