package apply

import (
	"kubeone/internal/locks"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A working directory is removed unless another run has taken its lock.
func TestForgetLeavesTheLockOfAnotherRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner string
		stays bool
	}{
		"free":                               {"", false},
		"the run itself has it still":        {"holder=a@b\nrun=run-1\ngeneration=7\n", false},
		"another one has taken it meanwhile": {"holder=c@d\nrun=run-2\ngeneration=8\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			dir := filepath.Join(root, "var/lib/kubeone/lock")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(root, "var/lib/kubeone/snapshots/kubeone-reset-1"), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.owner != "" {
				if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(c.owner), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			here := locks.WithFile(locks.FlockTimeout, scriptText("forget"))
			here = strings.ReplaceAll(here, "/var/lib", filepath.Join(root, "var/lib"))
			here = strings.ReplaceAll(here, "/run/kubeone", filepath.Join(root, "run/kubeone"))
			forget := exec.CommandContext(t.Context(), "sh", "-c", here, "sh", "run-1")
			if out, err := forget.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			disk := filepath.Join(root, "var/lib/kubeone/snapshots/kubeone-reset-1")
			if _, err := os.Stat(disk); err != nil { // on its own disk; otherwise a rename would have moved it
				t.Errorf("what a reset has kept: %v", err)
			}
			if _, err := os.Stat(dir); (err == nil) != c.stays {
				t.Errorf("the working directory: %v; it is to stay: %v", err, c.stays)
			}
		})
	}
}
