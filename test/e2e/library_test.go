//go:build e2e && long

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestTwoEnginesInOneProcess runs examples/library, built with the race detector: one engine installs a cluster while
// another engine upgrades another cluster.
func TestTwoEnginesInOneProcess(t *testing.T) {
	t.Parallel()
	// first, because it keeps a small machine busy for minutes
	program, err := buildLibraryExample(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bare := newScenario(t, fleet.Options{Name: "library-new", ControlPlanes: 1})
	older := newScenario(t, fleet.Options{Name: "library-older", ControlPlanes: 1, KubernetesVersion: olderPatch})
	installPlain(older)
	older.must(older.Want(t.Context(), newest))

	cmd := exec.CommandContext(t.Context(), program, bare.Manifest+"="+bare.Bundle, older.Manifest+"="+older.Bundle)
	cmd.Env = append(os.Environ(), "KUBEONE_STATE="+filepath.Join(t.TempDir(), "state"), "GORACE=halt_on_error=1")
	out, err := cmd.CombinedOutput()
	text := string(out)
	for _, want := range []string{"library-new: install,", "library-older: upgrade,"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if err != nil || strings.Count(text, "matches its manifest") != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, s := range []*scenario{bare, older} {
		s.must(s.FetchKubeconfig(t.Context()))
		s.awaitHealthy()
		s.everythingRuns(newest)
	}
	if !atTheSameTime(operator.Lines(text)) {
		t.Errorf("one after the other:\n%s", text)
	}
}

// buildLibraryExample builds the example with the race detector.
func buildLibraryExample(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "library")
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "-o", program, "../../examples/library")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}

// atTheSameTime reports whether each cluster's first step ended before the other cluster was finished.
func atTheSameTime(lines []string) bool {
	seen := map[string]bool{}
	for _, line := range lines {
		name, what, _ := strings.Cut(line, ": ")
		if what == "matches its manifest" {
			return len(seen) == 2
		}
		seen[name] = seen[name] || strings.HasPrefix(what, "cp-")
	}
	return false
}
