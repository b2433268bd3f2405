//go:build e2e

package e2e

import (
	"testing"

	"kubeone/test/lab/fleet"
)

// TestLifeOfACluster takes a cluster from bare hosts to bare hosts. It upgrades to a newer patch version under load,
// adds a worker, deletes an API server's manifest, destroys two of three control-plane hosts, and resets the cluster.
// The operator's SSH user is not root. `make long` covers more.
func TestLifeOfACluster(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "life", ControlPlanes: 3, Workers: 2, SpareWorkers: 1, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"bare hosts become a cluster", installCluster},
		part{"what runs in the cluster works", checkWorkload},
	)
	under := s.startLoad()
	s.runPart("while it is used, it gets a newer version, through two failures of the operator's machine",
		upgradeCluster)
	s.endLoad(under)
	if t.Failed() {
		t.Fatal("without an upgraded cluster the scenario ends here")
	}
	_, err := s.Kube(t.Context(), "delete", "namespace", "load")
	s.must(err)
	s.runParts(
		part{"a plan after it is empty", emptyPlan},
		part{"a second apply finds nothing to do", nothingToDo},
		part{"another worker joins", addWorker},
		part{"an API server's manifest is deleted", manifestDeleted},
		part{"a recovery is refused while the quorum is there", recoveryRefused},
		part{"two of three control-plane hosts are destroyed, and the third one brings the cluster back",
			twoOfThreeDestroyed},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}
