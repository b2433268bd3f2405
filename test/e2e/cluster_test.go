//go:build e2e

package e2e

import (
	"testing"

	"kubeone/test/lab/fleet"
)

// TestLifeOfACluster tells the life of a cluster of three control-plane hosts, from bare hosts back to bare hosts. The
// operator's SSH user is not root.
func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	s := begin(t, fleet.Options{Name: "e2e", ControlPlanes: 3, Workers: 1, SpareWorkers: 1, SSHUser: "ops"})
	s.bare = s.snapshot()
	s.chapter("what is wrong with bare hosts is said, and nothing is changed", badHosts)
	s.chapter("what is wrong with the input is said, and nothing is changed", badInput)
	s.chapter("four bare hosts become a cluster", install)
	if err := s.AllReady(t.Context(), hostnames(s.Members())...); err != nil {
		t.Fatalf("without a cluster the story ends here: %v", err)
	}
	s.chapter("what runs in the cluster works", workload)
	s.chapter("a second apply finds nothing to do", nothingToDo)
	s.chapter("snapshots and backups hold what the cluster has", backups)
	s.chapter("one more worker joins, and nobody else notices", addWorker)
	s.chapter("a host that hangs is named, and is no harm", pausedHost)
	s.chapter("a manifest that is not for this cluster is refused", wrongManifest)
	s.chapter("one worker leaves, and is bare again", resetWorker)
	s.chapter("two operators do not work at the same time", twoOperators)
	s.chapter("the cluster ends, and leaves nothing on its hosts", reset)
	s.chapter("an installation that is cut off again and again comes to its end", interrupted)
}
