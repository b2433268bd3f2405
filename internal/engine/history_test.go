package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster"
	"kubeone/internal/observed"
)

func TestRunsThatNobodyHasALockForWereKilled(t *testing.T) {
	t.Parallel()
	world := observed.World{
		API: observed.API{Lease: &observed.Lock{RunID: "lease", Live: true}},
		Hosts: map[string]observed.Host{
			"1": {Lock: &observed.Lock{RunID: "host", Live: true}}, "2": {Lock: &observed.Lock{RunID: "stale"}}, "3": {},
		},
	}
	var runs []cluster.Run
	for _, id := range []string{"done", "gone", "stale", "host", "lease"} {
		runs = append(runs, cluster.Run{ID: id, Result: cluster.RunRunning})
	}
	runs[0].Result = cluster.RunDone
	want := []cluster.Run{
		{ID: "lease", Result: cluster.RunRunning}, {ID: "host", Result: cluster.RunRunning}, {ID: "stale", Result: cluster.RunInterrupted},
		{ID: "gone", Result: cluster.RunInterrupted}, {ID: "done", Result: cluster.RunDone},
	}
	if diff := cmp.Diff(want, newestFirst(runs, world)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if runs[1].Result != cluster.RunRunning {
		t.Error("the runs that were given are changed")
	}
}
