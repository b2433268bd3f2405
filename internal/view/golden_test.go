package view

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// go test ./internal/view -update rewrites the golden files.
var update = flag.Bool("update", false, "rewrite the golden files")

// The styles of the golden files.
var (
	inPipe     = Style{}
	onTerminal = Style{Unicode: true, Width: 100}
	inColour   = Style{Unicode: true, Width: 100, Color: true}
	narrow     = Style{Width: 60}
)

// golden compares a text with its file below testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) // #nosec G304 -- a name from the tests
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", file, diff)
	}
}

// mustBePlain fails on anything that a terminal would take for a command, on blanks at the end of a line, and on lines
// that are broken although they should not be, or are not although they should.
func mustBePlain(t *testing.T, s Style, text string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if strings.ContainsAny(line, "\x1b\r\a") {
			t.Errorf("line %d has a control character: %q", i+1, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends with blanks: %q", i+1, line)
		}
		if words := strings.Fields(line); s.Width > 0 && width(line) > s.Width && len(words) > 3 {
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
