package script

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Containers end and go in a few calls, however many there are; a task that has no process any more is no process of ours.
func TestResetEndsAllContainersAtOnce(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.command("ctr", `cd '`+b.root+`'
	case "$*" in
	*"tasks ls -q"*) [ -f removed ] || printf 'first\nsecond\n' ;;
	*"tasks ls"*) printf 'TASK PID STATUS\nfirst %s RUNNING\nsecond 0 STOPPED\n' "$(cat pid)" ;;
	*"tasks rm"*) : >removed ;;
	*"containers ls -q"*) printf 'first\nsecond\nthird\n' ;;
	esac`)
	b.must("sleep 1000 & echo $! >@ROOT@/pid; stop_containers; ! wait $!")
	var removals []string
	for _, call := range b.calls() {
		if strings.Contains(call, " rm ") {
			removals = append(removals, call)
		}
	}
	want := []string{"ctr -n k8s.io tasks rm --force first second", "ctr -n k8s.io containers rm first second third"}
	if diff := cmp.Diff(want, removals); diff != "" {
		t.Error(diff)
	}
}
