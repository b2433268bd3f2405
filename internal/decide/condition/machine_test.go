package condition

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// A host with a Machine's marker is not the manifest's, unless it is classified as a Machine's.
func TestAHostOfAMachineIsNotTheManifests(t *testing.T) {
	t.Parallel()
	want := decidetest.Wanted(1, 1)
	cx := HostContext{Cluster: decidetest.Cluster, CA: decidetest.CA, API: observed.Yes, Etcd: observed.Yes}
	for role, c := range map[desired.Role]struct {
		host desired.Host
		is   Condition
	}{
		desired.ControlPlane: {want.ControlPlane[0], Foreign},
		desired.Worker:       {want.Workers[0], Unclear},
	} {
		seen := decidetest.Member(c.host)
		marker := *seen.Marker
		marker.ID, marker.Machine = "uid-1", "kube-system/pool-1"
		seen.Marker = &marker
		got := Classify(&c.host, &seen, cx)
		if got.Condition != c.is || !problem.Has(got.Reasons, problem.HostOfMachine) {
			t.Errorf("%s: %s, %v", role, got.Condition, got.Reasons)
		}
		if role == desired.Worker {
			machine := cx
			machine.Machine = true
			if got := Classify(&c.host, &seen, machine); problem.Has(got.Reasons, problem.HostOfMachine) {
				t.Errorf("asked about as a Machine's: %s, %v", got.Condition, got.Reasons)
			}
		}
	}
}
