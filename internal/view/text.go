// Package view renders plans, progress, status and diagnostics as text and as JSON.
//
// Every text is a pure function of plain values and a Style: equal inputs give equal bytes. Control characters are
// removed from text that comes from hosts, manifests or error messages. If text cannot be written, it is lost without
// an error, because the program must not depend on its readers. The JSON documents are versioned and described in
// docs/json.md.
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

// cleanText makes a text safe for a terminal. It returns one line without escape sequences, other control characters,
// and characters that change the text direction.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, escapeSequence.ReplaceAllString(text, ""))
}

// escapeSequence matches escape sequences for colours, cursor movements and window titles.
var escapeSequence = regexp.MustCompile(
	`\x1b(\[[0-9;:?<=>]*[\x20-\x2f]*[\x40-\x7e]|\][^\x07\x1b]*(\x07|\x1b\\)?|[\x40-\x5f])`)

// textWidth returns the width of a text in columns, without escape sequences.
func textWidth(text string) int {
	return utf8.RuneCountInString(escapeSequence.ReplaceAllString(text, ""))
}

// padRight pads a text on the right to n columns.
func padRight(text string, n int) string {
	if missing := n - textWidth(text); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// padLeft pads a text on the left to n columns.
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

// wrapText breaks a text between words into lines of at most n columns; 0 means no limit. A word of more than n columns
// is on a line of its own.
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

// joinNames joins the first limit names into a phrase. If there are more names, the phrase ends with their number.
func joinNames(names []string, limit int) string { return problem.List(problem.Some(names, limit)) }

// formatDuration formats a duration briefly: "4.1s", "3m12s", "1h05m".
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

// formatSeconds formats a duration in full seconds, for times that are updated live.
func formatSeconds(d time.Duration) string {
	if d = max(d, 0); d < 100*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return formatDuration(d)
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Days returns the number of full days between two times; it is negative if to is before from.
func Days(from, to time.Time) int {
	d := to.Sub(from)
	if d < 0 {
		return -int(-d/(24*time.Hour)) - 1
	}
	return int(d / (24 * time.Hour))
}

// atHost puts the name of a host before a sentence, unless the name is "" or the sentence already begins with it.
func atHost(name, sentence string) string {
	if name == "" || strings.HasPrefix(sentence, name+":") || strings.HasPrefix(sentence, name+" ") {
		return sentence
	}
	return name + ": " + sentence
}

// nameOrID returns the display name of a host, or its ID if it has no display name.
func nameOrID(names map[string]string, id string) string {
	if name := names[id]; name != "" {
		return name
	}
	return id
}

// Style holds the settings for text output. The zero value means ASCII without colours, in lines of any length.
type Style struct {
	Color, Unicode bool
	Width          int  // columns; 0 means that lines are not wrapped
	Live           bool // the output is a terminal with a movable cursor
}

// StyleFor returns the style for output to w. Terminals get colours, a width and live lines, unless TERM is dumb. CI
// disables live lines. NO_COLOR (https://no-color.org) disables colours; CLICOLOR_FORCE or FORCE_COLOR enables them for
// any output. COLUMNS overrides the width of a terminal. Non-ASCII characters need a UTF-8 locale.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	s := Style{Unicode: isUTF8Locale(getenv)}
	columns, _, terminal := terminalSize(w)
	if terminal && getenv("TERM") != "dumb" {
		s.Color, s.Live, s.Width = true, !isSet(getenv("CI")), columns
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 && terminal {
		s.Width = n
	}
	s.Color = s.Color || isSet(getenv("CLICOLOR_FORCE")) || isSet(getenv("FORCE_COLOR"))
	s.Color = s.Color && getenv("NO_COLOR") == ""
	return s
}

func isSet(value string) bool { return value != "" && value != "0" && value != "false" }

// isUTF8Locale reports whether the locale is UTF-8. It uses the first variable that is set, in POSIX order.
func isUTF8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// terminalSize returns the size of the terminal behind w in characters, and whether w is a terminal.
func terminalSize(w io.Writer) (columns, rows int, terminal bool) {
	file, ok := cleanWriter(w).(*os.File)
	if !ok {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(file.Fd())) // #nosec G115 -- a file descriptor is small
	return columns, rows, err == nil
}

// ink is the parameter in the escape sequence for a colour or weight (ECMA-48, SGR). Empty means the default.
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

// paintText colours a text if the style allows it.
func (s Style) paintText(color ink, text string) string {
	if !s.Color || color == plain || text == "" {
		return text
	}
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}

// pickText returns the first text if the style has Unicode, otherwise the second, which is ASCII.
func (s Style) pickText(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

func (s Style) ellipsisText() string { return s.pickText("…", "...") }

// remainingWidth returns the number of columns after an indentation. 0 means no limit: the style has no width, or so
// few columns are left that almost every word would be on a line of its own.
func (s Style) remainingWidth(indent int) int {
	const minWidth = 24
	if s.Width == 0 || s.Width-indent < minWidth {
		return 0
	}
	return s.Width - indent
}

// Verbosity is the level of detail in a plan.
type Verbosity int

// Levels of detail.
const (
	Normal  Verbosity = iota // what the operator needs for approval
	Verbose                  // every change of every step
)

// page collects a text. flush writes it in a single write, so that it does not mix with output of other writers.
type page struct {
	strings.Builder
	style Style
}

// addLine adds one line. An empty text adds a blank line.
func (p *page) addLine(text string) {
	p.WriteString(strings.TrimRight(text, " "))
	p.WriteByte('\n')
}

// addParagraph adds a text, wrapped to the width in the style. The first line begins with lead. The other lines are
// indented by the width of lead.
func (p *page) addParagraph(lead, text string, color ink) {
	indent := textWidth(lead)
	for i, line := range wrapText(cleanText(text), p.style.remainingWidth(indent)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		p.addLine(lead + p.style.paintText(color, line))
	}
}

// addSpace adds a blank line, unless the page is empty or already ends with one.
func (p *page) addSpace() {
	if p.Len() > 0 && !strings.HasSuffix(p.String(), "\n\n") {
		p.addLine("")
	}
}

// addHeading begins a section: it adds a blank line and the title.
func (p *page) addHeading(title string) {
	p.addSpace()
	p.addLine(p.style.paintText(bold, cleanText(title)))
}

func (p *page) flush(w io.Writer) { _, _ = io.WriteString(cleanWriter(w), p.String()) }
