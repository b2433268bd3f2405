// Package golden keeps what programs write in files that people read: a test compares the two, and with -update it
// writes the file again, to be looked at before it is committed.
package golden

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"
)

//nolint:gochecknoglobals // a flag of every test that imports this
var update = flag.Bool("update", false, "rewrite the golden files instead of comparing them")

// Update reports whether files are to be rewritten.
func Update() bool { return *update }

// Check fails the test if the file, relative to the test's package, is not what was made; with -update it becomes that.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path) // #nosec G304 -- a name from a test
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is written now (-file +now); if that is right, run this test with -update:\n%s", path,
			diff)
	}
}

// hunk begins a part of a difference. It names line numbers, which change wherever a line is added before.
var hunk = regexp.MustCompile(`(?m)^@@ .*$`)

// Difference returns the lines of text that differ from a base, as a unified diff without context and line numbers. A
// change of both texts leaves it as it is, so that a file for each of many similar texts need not be written again.
func Difference(t testing.TB, base, text string) string {
	t.Helper()
	out, err := udiff.ToUnified("base", "text", base, udiff.Lines(base, text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return hunk.ReplaceAllString(out, "@@")
}
