package apply

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// A host outside etcd at plan time may have joined within this very plan. Its member is not stopped while the others
// have no quorum. A worker never has a member, so its step starts without asking etcd.
func TestHostThatJoinedMeanwhileStopsOnlyWithQuorum(t *testing.T) {
	t.Parallel()
	was := observed.World{
		Hosts: map[string]observed.Host{"1": {EtcdData: observed.No}},
		Etcd:  observed.Etcd{Reached: observed.Yes, Members: voters(true, true, true).Members[1:]},
	}
	s := upgradeStep(step.UpgradeControlPlane, nil)
	check := EtcdCheckBeforeStep(s, desired.Cluster{}, was)
	if check == nil {
		t.Fatal("etcd is not asked")
	}
	if wrong, err := check.Wrong(voters(true, true, true)); wrong != "" || err != nil {
		t.Errorf("beside healthy members: %q, %v", wrong, err)
	}
	if wrong, err := check.Wrong(voters(true, false, true)); wrong == "" || err != nil {
		t.Errorf("beside one that is down: %q, %v", wrong, err)
	}
	s = upgradeStep(step.UpgradeWorker, nil)
	s.Intent.Role, s.Intent.NodeName = desired.Worker, "w-1"
	if EtcdCheckBeforeStep(s, desired.Cluster{}, was) != nil {
		t.Error("etcd is asked about a worker")
	}
}
