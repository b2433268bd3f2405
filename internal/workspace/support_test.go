package workspace

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// A worker that claims another's name, or a path, gets no other host's directory in a support bundle.
func TestEachHostHasAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	w, err := Open(t.Context(), options(t, manifestText))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := engine.Proposal{
		Plan: plan.Plan{Nodes: map[string]string{
			"192.0.2.11": "cp-1", "192.0.2.21": "w-1", "192.0.2.22": "w-1", "192.0.2.23": "..", "192.0.2.24": "w-4",
			"192.0.2.25": "w-4",
		}},
		Observed: probe.Result{World: observed.World{Hosts: map[string]observed.Host{}}},
	}
	p.Plan.Hosts = p.Plan.Nodes
	for id := range p.Plan.Hosts {
		p.Want.Workers = append(p.Want.Workers, desired.Host{ID: id})
		if id < "192.0.2.24" {
			p.Observed.World.Hosts[id] = observed.Host{Reach: observed.Reached}
		}
	}
	hosts, silent := w.hostFolders(p)
	got := [][]string{slices.Sorted(maps.Keys(hosts)), slices.Sorted(maps.Keys(silent))}
	if diff := cmp.Diff([][]string{
		{"192.0.2.21", "192.0.2.22", "192.0.2.23", "cp-1"}, {"192.0.2.24", "192.0.2.25"},
	}, got); diff != "" {
		t.Error(diff)
	}
}
