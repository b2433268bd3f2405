//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

func installPlain(s *scenario) {
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.must(s.FetchKubeconfig(s.Context()))
	s.awaitHealthy()
}

// writeMarkerObject writes an object that must survive the next parts.
func (s *scenario) writeMarkerObject(name string) {
	s.Helper()
	s.eventually("an object is written", time.Minute, writesObject(s, name))
}

// repairCluster runs apply, and checks that the cluster is complete and still has the object.
func (s *scenario) repairCluster(name string) {
	s.Helper()
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.awaitHealthy()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
	if _, err := s.Kube(s.Context(), "get", "configmap", name); err != nil {
		s.Errorf("what was written before is gone: %v", err)
	}
	s.runCommand(0, []string{"status"})
}

// planSays waits until plan prints the texts.
func (s *scenario) planSays(texts ...string) condition {
	return func(ctx context.Context) error {
		r := s.Run(ctx, "plan")
		for _, text := range texts {
			if !strings.Contains(r.Text(), text) {
				return fmt.Errorf("plan does not say %q:\n%s", text, r)
			}
		}
		return nil
	}
}

// breakHost runs a command at a host's console.
func (s *scenario) breakHost(host *fleet.Host, command string) {
	s.Helper()
	_, err := host.Exec(s.Context(), command)
	s.must(err)
}

// otherMembers returns the members without host.
func (s *scenario) otherMembers(host *fleet.Host) []*fleet.Host {
	return slices.DeleteFunc(s.Members(), func(h *fleet.Host) bool { return h == host })
}

func kubeletStopped(s *scenario) {
	host := s.Lab.Host("cp-2")
	s.writeMarkerObject("kubelet")
	s.breakHost(host, "systemctl disable --now kubelet")
	s.runCommand(3, []string{"status"}, host.Hostname, "kubelet is not running")
	s.runCommand(2, []string{"plan"}, "restart kubelet", host.Hostname)
	s.checkEqual("hosts with steps", []string{host.Hostname}, s.plannedHosts())
	s.repairCluster("kubelet")
}

func containerdStopped(s *scenario) {
	host := s.Lab.Host("cp-3")
	s.writeMarkerObject("containerd")
	s.breakHost(host, "systemctl disable --now containerd")
	s.runCommand(3, []string{"status"}, host.Hostname, "containerd is not running")
	s.runCommand(2, []string{"plan"}, "restart containerd and kubelet", host.Hostname)
	s.checkEqual("hosts with steps", []string{host.Hostname}, s.plannedHosts())
	s.repairCluster("containerd")
}

// manifestDeleted: the missing manifest of an API server is written again, and no other host notices.
func manifestDeleted(s *scenario) {
	host := s.Lab.Host("cp-2")
	s.writeMarkerObject("manifest")
	before := s.readStarted(s.otherMembers(host))
	s.breakHost(host, "rm /etc/kubernetes/manifests/kube-apiserver.yaml")
	s.eventually("the API server has stopped", time.Minute,
		s.planSays("the static-pod manifest of kube-apiserver is missing"))
	s.runCommand(3, []string{"status"}, host.Hostname, "manifest of kube-apiserver is missing")
	s.runCommand(2, []string{"plan"}, "regenerate kube-apiserver", host.Hostname)
	s.checkEqual("hosts with steps", []string{host.Hostname}, s.plannedHosts())
	s.repairCluster("manifest")
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(s.otherMembers(host)))
}

func kubeletConfDeleted(s *scenario) {
	host := s.Lab.Host("worker-1")
	s.writeMarkerObject("kubelet-conf")
	s.breakHost(host, "rm /etc/kubernetes/kubelet.conf && systemctl restart kubelet || true")
	s.runCommand(3, []string{"status"}, host.Hostname, "its kubelet.conf is missing")
	s.runCommand(2, []string{"plan"}, "regenerate kubelet-credentials", host.Hostname)
	s.repairCluster("kubelet-conf")
}

// etcdDataDestroyed: the first host of the cluster loses etcd's data, and a new etcd there would form another cluster.
// It does not start; the member leaves etcd, and the same host joins again as a learner.
func etcdDataDestroyed(s *scenario) {
	host := s.Lab.Host("cp-1")
	s.writeMarkerObject("data")
	guards, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(),
		"[ -d /etc/kubeone/etcd-log/. ] && grep -c 'path: /etc/kubeone/etcd-log' /etc/kubernetes/manifests/etcd.yaml")
	s.must(err)
	s.Logf("manifests of etcd that mount its log: %v", guards)
	before := s.readStarted(s.otherMembers(host))
	s.breakHost(host, "rm -rf /var/lib/etcd/member; kill -9 $(pidof etcd)")
	s.eventually("the kubelet has tried to start etcd again", time.Minute, func(ctx context.Context) error {
		_, err := host.Exec(ctx, "journalctl -u kubelet --since=-60s | grep -q 'failed to mkdir.*etcd-log'")
		return err
	})
	s.breakHost(host, "! pidof etcd && [ ! -e /var/lib/etcd/member ]")
	s.runCommand(3, []string{"status"}, host.Hostname, "etcd")
	s.runCommand(2, []string{"plan"}, "move the remaining etcd data aside", "snapshot of etcd",
		"remove dead member "+host.Hostname,
		"join: etcd member")
	s.repairCluster("data")
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(s.otherMembers(host)))
}

// controlPlanesReplaced: several voters fail one after the other. One run replaces them all with new machines of the
// same names and addresses.
func controlPlanesReplaced(voters int, names ...string) func(*scenario) {
	return func(s *scenario) {
		s.writeMarkerObject("replaced")
		anew := []string{"snapshot of etcd", "delete the Node", "join: etcd member"}
		for n, name := range names {
			host := s.Lab.Host(name)
			s.must(host.Kill(s.Context()))
			s.eventually("status names it", time.Minute, func(ctx context.Context) error {
				if r := s.Run(ctx, "status"); r.Status != 3 || !strings.Contains(r.Text(), host.Hostname) {
					return fmt.Errorf("%s", r)
				}
				return nil
			})
			safe := fmt.Sprintf("That is safe now: without it, %d of %d voters are healthy, and the quorum is %d.",
				voters-1-n, voters-1, (voters-1)/2+1)
			s.eventually("plan says how to replace it", time.Minute, s.planSays(host.Hostname, safe, "terraform taint"))
			anew = append(anew, "remove dead member "+host.Hostname)
		}
		s.runCommand(10, []string{"apply", "-y"}, "nothing to apply until you complete the steps listed above")
		for _, name := range names {
			s.rebuildHost(s.Lab.Host(name))
		}
		s.runCommand(2, []string{"plan"}, anew...)
		s.repairCluster("replaced")
	}
}

// workersKilled: a new machine takes the name and address of one worker. The other worker is removed completely, and
// returns as a new one.
func workersKilled(s *scenario) {
	replaced, removed := s.Lab.Host("worker-1"), s.Lab.Host("worker-2")
	s.writeMarkerObject("workers")
	for _, host := range []*fleet.Host{replaced, removed} {
		s.must(host.Kill(s.Context()))
	}
	s.runCommand(3, []string{"status"}, replaced.Hostname, removed.Hostname)
	s.runCommand(2, []string{"plan"}, replaced.Hostname, removed.Hostname, "terraform taint")
	s.rebuildHost(replaced)
	s.runCommand(2, []string{"plan"}, "delete the Node", "join as worker")
	s.runCommand(15, []string{"node", "remove", removed.Hostname, "-y"}, "cannot be reached", "--unreachable")
	s.runCommand(0, []string{"node", "remove", removed.Hostname, "--unreachable", "-y"},
		"Now remove it from the manifest")
	s.runCommand(0, []string{"node", "remove", removed.Hostname, "--unreachable", "-y"}, "No changes")
	s.rebuildHost(removed)
	s.repairCluster("workers")
}

// rebuildHost replaces a host by a new machine.
func (s *scenario) rebuildHost(host *fleet.Host) {
	s.Helper()
	s.must(s.Lab.Rebuild(s.Context(), host))
	s.must(s.WriteManifest())
	maps.Copy(s.bare, s.snapshotOf(host))
}

// nodeReplaced: the same machine leaves and joins again in one plan, repeatedly.
func nodeReplaced(times int) func(*scenario) {
	return func(s *scenario) {
		host := s.Lab.Host("cp-2")
		s.writeMarkerObject("node")
		args := []string{"node", "replace", host.Hostname, "--bundle", s.Bundle}
		s.runCommand(2, append(args, "--dry-run"), "leave etcd", "reset to a bare host", "join: etcd member")
		for range times {
			s.runCommand(0, append(args, "-y"), "Done. The cluster matches the manifest.")
			s.awaitHealthy()
			s.eventually("nothing to do", time.Minute, s.planIsEmpty)
		}
		// Its etcd disk is still mounted, with its former content.
		s.breakHost(host, fmt.Sprintf(`mountpoint -q /var/lib/etcd &&
			[ "$(ls -d /var/lib/etcd/kubeone-reset-*/member | wc -l)" = %d ] &&
			[ -z "$(ls /var/lib/kubeone-old/*/*etcd* 2>/dev/null)" ]`, times))
	}
}

// mountCommand returns a command that makes the directory a mount point.
func mountCommand(dir string) string {
	disk := "/var/lib/disk-of-" + path.Base(dir)
	return "mkdir -p -m 700 " + disk + " " + dir + " && mount --bind " + disk + " " + dir + "\n"
}

// removalsRefused: with one of three members away, no other member may leave.
func removalsRefused(s *scenario) {
	s.runCommand(15, []string{"node", "remove", "cp-3", "--unreachable"}, "it is not unreachable")
	s.pauseDuring(func() {
		s.runCommand(15, []string{"node", "remove", "cp-1", "-y"},
			"must not leave: without it 1 of 2 voters healthy, quorum 2")
	}, s.Lab.Host("cp-3"))
	s.awaitHealthy()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}
