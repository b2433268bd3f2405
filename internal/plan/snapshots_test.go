package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

func TestSnapshotsOneHostAfterTheOtherWhereThereIsSomethingToTake(t *testing.T) {
	t.Parallel()
	ours := observed.Host{Reach: observed.Reached, Marker: &observed.Marker{Cluster: "prod"}, EtcdData: observed.Yes}
	theirs := ours
	theirs.Marker = &observed.Marker{Cluster: "other"}
	in := decide.Input{Want: desired.Cluster{Name: "prod"}, Is: observed.World{Hosts: map[string]observed.Host{
		"1": ours, "2": {Reach: observed.Unreachable, Problem: "no route"}, "3": theirs, "4": ours,
		"5": {Reach: observed.Reached}, "6": ours,
	}}}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		in.Want.ControlPlane = append(in.Want.ControlPlane,
			desired.Host{ID: id, Hostname: "cp-" + id, Role: desired.ControlPlane})
	}
	in.Want.Workers = []desired.Host{{ID: "6", Hostname: "w-6", Role: desired.Worker}}
	p := Snapshots(in)
	var got [][]string
	for _, s := range p.Steps {
		if s.Intent.Kind != step.Snapshot || s.Risk != NoRisk {
			t.Errorf("step %+v", s)
		}
		got = append(got, append([]string{s.ID}, s.Needs...))
	}
	if diff := cmp.Diff([][]string{{"snapshot/cp-1"}, {"snapshot/cp-4", "snapshot/cp-1"}}, got); diff != "" {
		t.Error(diff)
	}
	if len(p.Notes) != 3 {
		t.Errorf("notes %q", p.Notes)
	}
}
