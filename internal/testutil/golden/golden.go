// Package golden keeps what programs write in files that people read: a test compares the two, and with -update it
// writes the file anew, to be looked at before it is committed.
package golden

import (
	"flag"
	"os"
	"testing"

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
