package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster/record"
	"kubeone/internal/locks"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
)

func TestRunWithoutLockWasKilled(t *testing.T) {
	t.Parallel()
	world := observed.World{
		API: observed.API{Lease: &observed.Lock{RunID: "lease", Live: true}},
		Hosts: map[string]observed.Host{
			"1": {Lock: &observed.Lock{RunID: "host", Live: true}}, "2": {Lock: &observed.Lock{RunID: "stale"}},
			"3": {},
		},
	}
	var runs []record.Run
	for _, id := range []string{"done", "gone", "stale", "host", "lease"} {
		runs = append(runs, record.Run{ID: id, Result: record.Running})
	}
	runs[0].Result = record.Done
	want := []record.Run{
		{ID: "lease", Result: record.Running}, {ID: "host", Result: record.Running},
		{ID: "stale", Result: record.Interrupted},
		{ID: "gone", Result: record.Interrupted}, {ID: "done", Result: record.Done},
	}
	if diff := cmp.Diff(want, newestFirst(runs, world)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if runs[1].Result != record.Running {
		t.Error("the runs that were given are changed")
	}
}

// Only a run that holds the cluster's lock marks other runs in the history as killed.
func TestARunSaysWhetherItHoldsTheClustersLock(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []bool{true, false} {
		held := &locks.Set{Scope: plan.Scope{Cluster: cluster}}
		if got := s.newRun(p, held, RunOptions{}).Exclusive; got != cluster {
			t.Errorf("about the cluster: %t, exclusive: %t", cluster, got)
		}
	}
}
