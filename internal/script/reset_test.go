package script

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The snapshots of a host are kept as etcd's data is: the wrong host may have been reset.
func TestResetKeepsSnapshots(t *testing.T) {
	t.Parallel()
	const taken = "var/lib/kubeone/snapshots/cp-1-20260101T000000Z-schedule.db"
	b := controlPlane(t, "cp-1")
	b.write(taken, "etcd's data\n")
	b.write("var/lib/kubeone/snapshots/.cp-1-cut.db", "unfinished\n")
	b.must("remove_files")
	kept, err := filepath.Glob(b.path("var/lib/kubeone-old/*/*snapshots-reset/*"))
	if err != nil || len(kept) != 1 || !strings.HasSuffix(kept[0], "schedule.db") || b.read(taken) != "" {
		t.Errorf("kept: %q, %v", kept, err)
	}
	b.must("stage_purge")
	if kept, _ = filepath.Glob(b.path("var/lib/kubeone-old/*")); len(kept) != 0 {
		t.Errorf("left by a purge: %q", kept)
	}
}

// Containers end and go in a few calls, however many there are. The number of a task that has ended, or is no
// container's, is not touched.
func TestResetEndsAllContainersAtOnce(t *testing.T) {
	t.Parallel()
	b := controlPlane(t, "w-1")
	b.command("ctr", `cd '`+b.root+`'
	case "$*" in
	*"tasks ls -q"*) [ -f removed ] || printf 'first\nsecond\nthird\n' ;;
	*"tasks ls"*) printf 'TASK PID STATUS\nfirst %s RUNNING\nsecond %s STOPPED\nthird %s RUNNING\n' $(cat pids) ;;
	*"tasks rm"*) : >removed ;;
	*"containers ls -q"*) printf 'first\nsecond\nthird\n' ;;
	esac`)
	ended := b.must(`for n in 1 2 3; do
		sleep 1000 &
		echo $! >>@ROOT@/pids
		mkdir -p @ROOT@/proc/$!
		[ $n = 3 ] || echo 0::/kubepods/x >@ROOT@/proc/$!/cgroup
	done
	stop_containers
	for pid in $(cat @ROOT@/pids); do
		kill -TERM $pid 2>/dev/null || true # what has been killed stays that
		status=0
		wait $pid || status=$?
		echo $status
	done`)
	const killed, left = "137", "143"
	if want := strings.Join([]string{killed, left, left}, "\n"); ended != want {
		t.Errorf("containers' processes ended with %q, want %q", ended, want)
	}
	var removals []string
	for _, call := range b.calls() {
		if strings.Contains(call, " rm ") {
			removals = append(removals, call)
		}
	}
	want := []string{"ctr -n k8s.io tasks rm --force first second third",
		"ctr -n k8s.io containers rm first second third"}
	if diff := cmp.Diff(want, removals); diff != "" {
		t.Error(diff)
	}
}
