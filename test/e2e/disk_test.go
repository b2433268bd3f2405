//go:build e2e && long

package e2e

import (
	"strings"
	"testing"
	"time"

	"kubeone/test/lab/fleet"
)

// TestWorkerWithoutDisk has a worker whose disk cannot be written. kubeone reports it and leaves it alone, and
// everything else works.
func TestWorkerWithoutDisk(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "disk", ControlPlanes: 1, Workers: 2})
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"the disk of a worker is full", checkOthersWork(ailment{
			says: "its disk is full",
			// All of kubeone's files on that host, on a full file system.
			begin: `mkdir /run/full
				mount -t tmpfs -o size=2m full /run/full
				cd /var/lib/kubeone
				tar -cf - --exclude=./artifacts . | tar -xf - -C /run/full
				mount --bind /run/full /var/lib/kubeone
				cat /dev/zero >/var/lib/kubeone/full 2>/dev/null || true`,
			end: `umount /var/lib/kubeone /run/full`,
		})},
		part{"the disk of a worker is read-only", checkOthersWork(ailment{
			says: "its file system is read-only",
			begin: `mount --bind /var/lib/kubeone /var/lib/kubeone
				mount -o remount,bind,ro /var/lib/kubeone`,
			end: `umount /var/lib/kubeone`,
		})},
	)
}

// ailment is a defect of a worker.
type ailment struct{ says, begin, end string }

// checkOthersWork checks that everything else works while worker-2 cannot write.
func checkOthersWork(a ailment) func(*scenario) {
	return func(s *scenario) {
		ill, other := s.Lab.Host("worker-2"), s.Lab.Host("worker-1")
		running := s.readStarted([]*fleet.Host{ill})[ill.Hostname]
		s.breakHost(ill, a.begin)
		ended := false
		defer func() { // also when the part ends early
			if !ended {
				s.breakHost(ill, a.end)
			}
		}()
		s.runCommand(2, []string{"plan"}, ill.Hostname, "cannot be locked", a.says)
		s.runCommand(15, []string{"node", "remove", ill.Hostname, "-y"}, ill.Hostname)

		s.breakHost(other, "systemctl disable --now kubelet")
		s.runCommand(10, []string{"apply", "-y"}, ill.Hostname, a.says,
			"all possible steps are done; complete the steps listed above")
		s.awaitHealthy()

		s.runCommand(0, []string{"node", "remove", other.Hostname, "-y"})
		s.runCommand(10, []string{"apply", "-y"}, ill.Hostname, a.says,
			"all possible steps are done; complete the steps listed above")
		s.awaitHealthy()

		s.writeObjects("kept", 20)
		backup, key := s.writeBackup()
		s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host("cp-1")))
		s.must(s.WriteManifest())
		s.runCommand(10, []string{"recover", "--from", backup, "--identity", key, "-y"}, "the cluster is restored",
			a.says)
		s.checkObjectCount("kept", 20)
		s.awaitHealthy()

		now := s.readStarted([]*fleet.Host{ill})[ill.Hostname]
		for line := range strings.Lines(running) { // pods of the removed worker may have come in addition
			if !strings.Contains(now, strings.TrimSpace(line)) {
				s.Errorf("on %s, %q no longer runs:\n%s", ill.Hostname, line, now)
			}
		}
		ended = true
		s.breakHost(ill, a.end)
		s.eventually("nothing to do", time.Minute, s.planIsEmpty)
	}
}
