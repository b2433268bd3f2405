package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKube runs a kubectl with scripted answers, one for each call. The last answer repeats.
func TestKube(t *testing.T) {
	const (
		cut     = "Unable to connect to the server: unexpected EOF"
		refused = "The connection to the server 192.0.2.1:6443 was refused - did you specify the right host or port?"
		gone    = `Error from server (NotFound): daemonsets.apps "d" not found`
		there   = `Error from server (AlreadyExists): configmaps "c" already exists`
	)
	for name, c := range map[string]struct {
		args    []string
		answers []string // "" is success
		runs    int
		fails   string
	}{
		"served at once":                 {[]string{"get", "nodes"}, []string{""}, 1, ""},
		"cut off once":                   {[]string{"patch", "c"}, []string{cut, ""}, 2, ""},
		"cut off always":                 {[]string{"get", "nodes"}, []string{cut}, attempts, "unexpected EOF"},
		"no API":                         {[]string{"get", "nodes"}, []string{refused}, 1, "was refused"},
		"never there":                    {[]string{"delete", "d"}, []string{gone}, 1, "not found"},
		"deleted before it was cut off":  {[]string{"delete", "d"}, []string{cut, gone}, 2, ""},
		"gone when it is read again":     {[]string{"get", "d"}, []string{cut, gone}, 2, "not found"},
		"created before it was cut off":  {[]string{"create", "c"}, []string{cut, there}, 2, ""},
		"somebody else's, not cut off":   {[]string{"create", "c"}, []string{there}, 1, "already exists"},
		"refused after it was cut off":   {[]string{"create", "c"}, []string{cut, refused}, 2, "was refused"},
		"another member of etcd leads":   {[]string{"patch", "c"}, []string{"etcdserver: leader changed", ""}, 2, ""},
		"the API server is restarted":    {[]string{"patch", "c"}, []string{"connection reset by peer", ""}, 2, ""},
		"cut off, and cut off once more": {[]string{"patch", "c"}, []string{cut, cut, ""}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := &Operator{Dir: dir, Kubectl: filepath.Join(dir, "kubectl")}
			runs := filepath.Join(dir, "runs")
			var script strings.Builder
			fmt.Fprintf(&script, "#!/bin/sh\necho run >>%s\ncase $(wc -l <%[1]s) in\n", runs)
			for i, answer := range c.answers {
				pattern := fmt.Sprint(i + 1)
				if i == len(c.answers)-1 {
					pattern = "*"
				}
				if answer == "" {
					fmt.Fprintf(&script, "%s) echo served ;;\n", pattern)
				} else {
					fmt.Fprintf(&script, "%s) echo '%s' >&2; exit 1 ;;\n", pattern, answer)
				}
			}
			script.WriteString("esac\n")
			if err := os.WriteFile(o.Kubectl, []byte(script.String()), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := o.Kube(t.Context(), c.args...)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
			if text, err := os.ReadFile(runs); err != nil || strings.Count(string(text), "run") != c.runs {
				t.Errorf("ran %q (%v), want %d runs", text, err, c.runs)
			}
		})
	}
}
