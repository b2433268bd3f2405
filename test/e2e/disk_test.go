//go:build e2e && long

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/workspace"
	"kubeone/test/lab/fleet"
)

// TestWorkerWithoutDisk is a cluster in which nothing can be written on a worker: it is named and left alone, and
// everything else goes on. A worker that joins beside it is joined step by step, by a program that is made anew for
// each step.
func TestWorkerWithoutDisk(t *testing.T) {
	t.Parallel()
	s := begin(t, fleet.Options{Name: "disk", ControlPlanes: 1, Workers: 2})
	s.parts(
		part{"bare hosts become a cluster", installPlain},
		part{"the disk of a worker is full", besides(ailment{
			says: "its disk is full",
			// All that is ours there, on a file system without a byte left.
			begin: `mkdir /run/full
				mount -t tmpfs -o size=2m full /run/full
				cd /var/lib/kubeone
				tar -cf - --exclude=./artifacts . | tar -xf - -C /run/full
				mount --bind /run/full /var/lib/kubeone
				cat /dev/zero >/var/lib/kubeone/full 2>/dev/null || true`,
			end: `umount /var/lib/kubeone /run/full`,
		})},
		part{"the disk of a worker is read-only", besides(ailment{
			says: "its file system is read-only",
			begin: `mount --bind /var/lib/kubeone /var/lib/kubeone
				mount -o remount,bind,ro /var/lib/kubeone`,
			end: `umount /var/lib/kubeone`,
		})},
	)
}

// ailment is what is wrong with a worker.
type ailment struct{ says, begin, end string }

// besides shows that all else works while nothing can be written on worker-2.
func besides(a ailment) func(*story) {
	return func(s *story) {
		ill, other := s.Lab.Host("worker-2"), s.Lab.Host("worker-1")
		running := s.started([]*fleet.Host{ill})
		s.broken(ill, a.begin)
		ended := false
		defer func() { // also when the chapter ends early
			if !ended {
				s.broken(ill, a.end)
			}
		}()
		s.run(2, []string{"plan"}, ill.Hostname, "cannot be locked", a.says)
		s.run(15, []string{"node", "remove", ill.Hostname, "-y"}, ill.Hostname)

		s.broken(other, "systemctl disable --now kubelet")
		s.run(10, []string{"apply", "-y"}, ill.Hostname, a.says, "the rest needs you")
		s.healthy()

		s.run(0, []string{"node", "remove", other.Hostname, "-y"})
		s.stepByStep()
		s.healthy()

		s.objects("kept", 20)
		backup, key := s.backup()
		s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host("cp-1")))
		s.must(s.WriteManifest())
		s.run(10, []string{"recover", "--from", backup, "--identity", key, "-y"}, "the cluster is back", a.says)
		s.counted("kept", 20)
		s.healthy()

		s.same("what runs on "+ill.Hostname+" since when", running, s.started([]*fleet.Host{ill}))
		ended = true
		s.broken(ill, a.end)
		s.eventually("nothing to do", time.Minute, s.planIsEmpty)
	}
}

// stepByStep applies the manifest by calls that do not wait. Before each call the program is made anew, from files.
func (s *story) stepByStep() {
	s.Helper()
	open := func() *workspace.Workspace {
		w, err := workspace.Open(s.Context(), workspace.Options{
			Manifest: s.Manifest, Bundles: []string{s.Bundle}, NewHosts: host.PolicyProbe,
			StateDir: filepath.Join(s.Dir, "state"),
		})
		s.must(err)
		return w
	}
	w := open()
	p, err := w.Engine.Propose(s.Context(), engine.Apply{})
	s.must(err)
	at := w.Engine.Start(p)
	w.Close()
	var longest time.Duration
	calls := 0
	for ; !at.Over(); calls++ {
		text, err := json.Marshal(at)
		s.must(err)
		at = engine.Progress{}
		s.must(json.Unmarshal(text, &at))
		w := open()
		began := time.Now()
		at, err = w.Engine.Advance(s.Context(), engine.Apply{}, at, engine.RunOptions{})
		longest = max(longest, time.Since(began))
		w.Close()
		s.must(err)
	}
	s.Logf("%d steps in %d calls, the longest of %.1f s", len(at.Plan.Steps), calls, longest.Seconds())
	left := slices.DeleteFunc(slices.Clone(at.Plan.Steps), func(step plan.Step) bool {
		return at.Step(step.ID) == apply.Done
	})
	if len(left) > 0 || len(at.Failures()) > 0 || longest > time.Minute {
		s.Errorf("failures %q, not done: %v", at.Failures(), left)
	}
}
