package view

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

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
	columns, _, terminal := size(w)
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

// size is the size of the terminal behind w in characters, and whether there is one.
func size(w io.Writer) (columns, rows int, terminal bool) {
	file, ok := behind(w).(*os.File)
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

// paint colours a text where the style allows it.
func (s Style) paint(as ink, text string) string {
	if !s.Color || as == plain || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// pick is the first text where the style has Unicode, else the second, which is ASCII.
func (s Style) pick(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

func (s Style) ellipsis() string { return s.pick("…", "...") }

// room is how many columns are left beside an indentation; 0 is any number. Where hardly any is left, lines are not
// broken, which reads better than one word a line.
func (s Style) room(indent int) int {
	const least = 24
	if s.Width == 0 || s.Width-indent < least {
		return 0
	}
	return s.Width - indent
}
