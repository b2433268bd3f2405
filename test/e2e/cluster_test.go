//go:build e2e

package e2e

import (
	"testing"
	"time"

	"kubeone/test/lab/fleet"
)

// TestLifeOfACluster tells the life of a cluster of three control-plane hosts, from bare hosts back to bare hosts:
// it gets a newer patch version while it is used, grows and shrinks, is changed by hand, and loses hosts. The
// operator's SSH user is not root.
func TestLifeOfACluster(t *testing.T) {
	s := begin(t, fleet.Options{
		Name: "life", ControlPlanes: 3, Workers: 2, SpareWorkers: 1, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	// Some hosts have disks of their own for what others have in directories.
	s.broken(s.Lab.Host("cp-2"), mounted("/var/lib/etcd"))
	s.broken(s.Lab.Host("worker-3"), mounted("/var/lib/containerd")+mounted("/var/lib/kubelet"))
	s.bare = s.snapshot()
	began := time.Now()
	s.parts(part{"bare hosts become a cluster", install})
	installation := time.Since(began)
	s.parts(part{"what runs in the cluster works", workload})
	under := s.loaded()
	s.chapter("while it is used, it gets a newer version, through two failures of the operator's machine", upgrade)
	s.unharmed(under)
	if t.Failed() {
		t.Fatal("without an upgraded cluster the story ends here")
	}
	_, err := s.Kube(t.Context(), "delete", "namespace", "load")
	s.must(err)
	s.parts(part{"a plan after it is empty", emptyPlan})
	// Until now the load must not notice anything else on this machine. One that needs so long for this cluster alone
	// has no room for two: components would be late all the time.
	if room := 2 * time.Minute; installation < room {
		t.Parallel()
	} else {
		t.Logf("the installation took %s: no other cluster is made meanwhile", installation.Round(time.Second))
	}
	s.parts(
		part{"a second apply finds nothing to do", nothingToDo},
		part{"hosts are recognised in any order, under any ID, and with their addresses swapped", recognised},
		part{"hosts whose role the manifest changes are refused, whatever is asked", rolesChanged},
		part{"what somebody changes in the cluster by hand is found and brought back", liveObjects},
		part{"files that somebody edits on hosts are named and restored, but for static pods", editedFiles},
		part{"a cluster with another CA than the known one is refused", anotherCA},
		part{"snapshots and backups hold what the cluster has", backups},
		part{"one more worker joins, and nobody else notices", addWorker},
		part{"a host that hangs is named, and is no harm", pausedHost},
		part{"a manifest that is not for this cluster is refused", wrongManifest},
		part{"one worker leaves, and is bare again", resetWorker},
		part{"two operators do not work at the same time", twoOperators},
		part{"a living control-plane host is replaced", nodeReplaced(1)},
		part{"the cluster ends, and leaves nothing on its hosts", reset},
		part{"what is wrong with bare hosts is said, and nothing is changed", badHosts},
		part{"what is wrong with the input is said, and nothing is changed", badInput},
	)
}

// TestRecovery breaks two things in a cluster, which apply repairs, and loses its quorum; what was written before is
// counted. What else may break is in TestDisasters.
func TestRecovery(t *testing.T) {
	t.Parallel()
	s := begin(t, fleet.Options{Name: "recovery", ControlPlanes: 3, Workers: 1, SSHUser: "ops"})
	s.bare = map[string][]string{}
	s.parts(
		part{"bare hosts become a cluster", installPlain},
		part{"a kubelet is stopped", kubeletStopped},
		part{"an API server's manifest is deleted", manifestDeleted},
		part{"a recovery is refused while the quorum is there", recoveryRefused},
		part{"two of three control-plane hosts are destroyed, and the third one brings the cluster back",
			twoOfThreeDestroyed},
	)
}
