package view

import (
	"bytes"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, found := strings.CutPrefix(p, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestStyleOfAFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want Style
	}{
		{nil, Style{}},
		{[]string{"LANG=en_US.UTF-8", "TERM=xterm", "COLUMNS=120"}, Style{Unicode: true}},
		{[]string{"LC_ALL=C", "LANG=en_US.UTF-8"}, Style{}},
		{[]string{"LC_CTYPE=C.utf8"}, Style{Unicode: true}},
		{[]string{"CLICOLOR_FORCE=1"}, Style{Color: true}},
		{[]string{"FORCE_COLOR=true"}, Style{Color: true}},
		{[]string{"FORCE_COLOR=0"}, Style{}},
		{[]string{"FORCE_COLOR=1", "NO_COLOR=1"}, Style{}},
	} {
		if diff := cmp.Diff(c.want, StyleFor(&bytes.Buffer{}, env(c.env...))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.env, diff)
		}
	}
}

func TestNothingFromElsewhereReachesTheTerminalAsACommand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text":                         "plain text",
		"two\nlines\tand a tab":              "two lines and a tab",
		"\x1b[31mred\x1b[0m":                 "red",
		"\x1b]0;title\atext\x1b]8;;x\x1b\\y": "texty",
		"\x1bcreset":                         "creset",
		"\u009b31mC1\x7f\b\r":                "31mC1",
		"left\u202eright\u200b":              "leftright",
		"knäckebröd 面包":                      "knäckebröd 面包",
		"bad \xff byte":                      "bad \uFFFD byte",
	} {
		if got := cleanText(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	harmless := func(in string) bool {
		return !strings.ContainsFunc(cleanText(in), func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		})
	}
	if err := quick.Check(harmless, nil); err != nil {
		t.Error(err)
	}
}

func TestWrapLosesNoWordAndKeepsTheWidth(t *testing.T) {
	t.Parallel()
	text := "If it cannot be saved, replace it: registry.k8s.io/kube-controller-manager:v1.36.3 is what it ran."
	for n := range 60 {
		lines := wrapText(text, n)
		if got := strings.Join(lines, " "); got != text {
			t.Errorf("width %d: %q", n, got)
		}
		for _, line := range lines {
			if n > 0 && textWidth(line) > n && strings.Contains(line, " ") {
				t.Errorf("width %d: %q is too wide", n, line)
			}
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		style Style
		n     int
		want  string
	}{
		{inPipe, 10, "knäckebröd"}, {inPipe, 9, "knäcke..."}, {onTerminal, 9, "knäckebr…"}, {inPipe, 3, "knä"},
		{inPipe, 0, ""}, {inPipe, -1, ""},
	} {
		if got := c.style.clipText("knäckebröd", c.n); got != c.want {
			t.Errorf("clip to %d = %q, want %q", c.n, got, c.want)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d           time.Duration
		took, whole string
	}{
		{-time.Second, "0.0s", "0s"},
		{4120 * time.Millisecond, "4.1s", "4s"},
		{99900 * time.Millisecond, "99.9s", "99s"},
		{99960 * time.Millisecond, "1m40s", "99s"},
		{192 * time.Second, "3m12s", "3m12s"},
		{59*time.Minute + 59*time.Second, "59m59s", "59m59s"},
		{59*time.Minute + 59*time.Second + 700*time.Millisecond, "1h00m", "1h00m"},
		{65 * time.Minute, "1h05m", "1h05m"},
	} {
		if got := formatDuration(c.d); got != c.took {
			t.Errorf("took(%s) = %s, want %s", c.d, got, c.took)
		}
		if got := formatSeconds(c.d); got != c.whole {
			t.Errorf("whole(%s) = %s, want %s", c.d, got, c.whole)
		}
	}
}

func TestDaysLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		want int
	}{
		{30 * 24 * time.Hour, 30},
		{30*24*time.Hour - 1, 29},
		{time.Hour, 0},
		{0, 0},
		{-time.Hour, -1},
		{-25 * time.Hour, -2},
	} {
		if got := Days(now(), now().Add(c.left)); got != c.want {
			t.Errorf("%s left are %d days, want %d", c.left, got, c.want)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"a"}, "a"}, {[]string{"a", "b"}, "a and b"}, {[]string{"a", "b", "c"}, "a, b and c"},
		{[]string{"a", "b", "c", "d", "e"}, "a, b, c and 2 more"},
	} {
		if got := joinNames(c.names, 3); got != c.want {
			t.Errorf("%v: %q, want %q", c.names, got, c.want)
		}
	}
}

// TestTablesAlign checks that the second column of every row has the same place, whatever the names and colours.
func TestTablesAlign(t *testing.T) {
	t.Parallel()
	for _, s := range []Style{inPipe, inColour} {
		tab := &table{indent: 1, head: []string{"NAME", "VALUE"}}
		tab.addRow(cell{"x", red}, cell{"here", plain})
		tab.addRow(cell{"ein-sehr-länglicher-name", bold}, cell{"here", green})
		for _, row := range tab.renderLines(s)[1:] {
			text := escapeSequence.ReplaceAllString(row[0], "")
			if at := textWidth(text[:strings.Index(text, "here")]); at != 27 {
				t.Errorf("%+v: second column at %d in %q", s, at, text)
			}
		}
	}
}
