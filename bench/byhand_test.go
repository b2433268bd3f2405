package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/testutil/short"
)

func TestEqualStagesAreAdded(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tick := func() time.Time { now = now.Add(time.Second); return now }
	printed := "hello\nstage copy a\nstage import a\nwhatever\nstage copy b\nstage ready a\n"
	// Each stage reads the clock twice: at the end of the previous stage and at its own start.
	want := []stage{{"copy", 2}, {"import", 1}, {"ready", 1}}
	if diff := cmp.Diff(want, readStages(strings.NewReader(printed), tick)); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestByHandIsValidShell(t *testing.T) {
	t.Parallel()
	for _, check := range [][]string{{"bash", "-n"}, {"shellcheck", "-"}} {
		short.Tool(t, check[0])
		cmd := exec.CommandContext(t.Context(), check[0], check[1:]...)
		cmd.Stdin = strings.NewReader(byHand)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", check, err, out)
		}
	}
}

func TestByHandNeverSleeps(t *testing.T) {
	t.Parallel()
	for n, line := range strings.Split(byHand, "\n") {
		if strings.Contains(line, "sleep ") {
			t.Errorf("line %d: %s", n+1, line)
		}
	}
}

func TestFailureHasLastLines(t *testing.T) {
	t.Parallel()
	_, err := runStaged(exec.CommandContext(t.Context(), "sh", "-c",
		"echo stage copy a; echo no such host >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("error %v", err)
	}
}
