package script

import (
	"os/exec"
	"strings"
	"testing"
)

// echoed is what a shell makes of one quoted word.
func echoed(t *testing.T, s string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-s")
	cmd.Stdin = strings.NewReader("printf %s " + Quote(s))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", s, err, out)
	}
	return string(out)
}

func FuzzQuoteIsOneWordOfTheShell(f *testing.F) {
	for _, s := range []string{
		"", "plain", "it's", "''", `\`, `\'`, "$HOME $(id) `id`", "a\nb\n", "* ? [a]", "-n", "!!", "é ✓", "\x01\x7f",
		`"`, "#", "~", "a;b|c&d>e", strings.Repeat("'", 100),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "\x00") {
			return // no argument of a program can hold it
		}
		if got := echoed(t, s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
