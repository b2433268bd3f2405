// Package golden compares output with files in testdata. With -update, it rewrites the files; review them before the
// commit.
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

// Update reports whether to rewrite files.
func Update() bool { return *update }

// Check fails the test if the file, relative to the package of the test, differs from got. With -update, it writes the
// file.
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

// hunk matches the header of a hunk. It has line numbers, which change with every line added before.
var hunk = regexp.MustCompile(`(?m)^@@ .*$`)

// Difference returns the lines of text that differ from a base, as a unified diff without context and line numbers. A
// change of both texts does not change it, so that golden files of many similar texts stay the same.
func Difference(t testing.TB, base, text string) string {
	t.Helper()
	out, err := udiff.ToUnified("base", "text", base, udiff.Lines(base, text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return hunk.ReplaceAllString(out, "@@")
}
