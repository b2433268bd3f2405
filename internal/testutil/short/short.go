// Package short reduces tests with -short, as "make check" does. "make test" runs all.
package short

import (
	"os/exec"
	"testing"
)

// Fewer returns the number of cases, or a tenth of them with -short.
func Fewer(cases int) int {
	if testing.Short() {
		return cases / 10
	}
	return cases
}

// Tool returns the path of a program that a test needs. If the program is not installed, the test is skipped with
// -short, which needs nothing but Go, and fails without it.
func Tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case testing.Short():
		t.Skipf("%s is not installed", name)
	default:
		t.Fatalf("%s is not installed; make unit installs it", name)
	}
	return path
}
