package cli

import (
	"strings"
	"testing"

	"kubeone/internal/engine"
)

// A run prints what it waits for at once, and again only when that changes.
func TestWhatARunWaitsForIsSaidOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tell := printWaiting(&out)
	for _, name := range []string{"cp-1", "cp-1", "cp-2"} {
		tell(engine.Proposal{}, []engine.Pending{
			{Name: name, Why: engine.Starting}, {Name: "demo", Why: engine.Differs},
		})
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "cp-1: not") || !strings.Contains(lines[1], "cp-2") ||
		!strings.HasSuffix(lines[0], "; checking again, for up to a minute") {
		t.Errorf("said %q", lines)
	}
}
