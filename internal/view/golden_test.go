package view

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/testutil/golden"
)

// The styles of the golden files.
var (
	inPipe     = Style{}
	onTerminal = Style{Unicode: true, Width: 100}
	inColour   = Style{Unicode: true, Width: 100, Color: true}
	narrow     = Style{Width: 60}
)

// pinned compares a text with its file below testdata.
func pinned(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name), got)
}

// mustBePlain fails on terminal control characters, on trailing blanks, and on lines that are wrapped or not wrapped by
// mistake.
func mustBePlain(t *testing.T, s Style, text string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if strings.ContainsAny(line, "\x1b\r\a") {
			t.Errorf("line %d has a control character: %q", i+1, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends with blanks: %q", i+1, line)
		}
		if words := strings.Fields(line); s.Width > 0 && textWidth(line) > s.Width && len(words) > 3 {
			t.Errorf("line %d is wider than %d columns: %q", i+1, s.Width, line)
		}
	}
	if !s.Unicode && strings.ContainsFunc(text, func(r rune) bool { return r > 126 }) {
		t.Errorf("other characters than ASCII:\n%s", text)
	}
}

func render(f func(*bytes.Buffer)) string {
	var b bytes.Buffer
	f(&b)
	return b.String()
}
