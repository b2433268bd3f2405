//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/locks"
	"kubeone/test/e2e/operator"
)

// resetWorker takes one worker out of the running cluster: its Node is deleted, the host is bare, and nothing else
// changes.
func resetWorker(s *scenario) {
	leaving := s.Lab.Host("worker-3")
	staying := s.otherMembers(leaving)
	before := s.readStarted(staying)
	s.runCommand(0, []string{"reset", "-y", "--host", leaving.Hostname}, "Done. The hosts are bare.")
	s.eventually("the other nodes are Ready", time.Minute, func(ctx context.Context) error {
		return s.AllReady(ctx, hostnamesOf(staying)...)
	})
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(staying))
	s.checkUnchanged(map[string][]string{leaving.Hostname: s.bare[leaving.Hostname]}, s.snapshotOf(leaving))
}

// twoOperators: the first operator's machine suspends while it joins the worker again. The second operator learns who
// holds the lock, takes over, and finishes. When the first one resumes, the host refuses its next step.
func twoOperators(s *scenario) {
	first, err := s.Start(s.Context(), "apply", "-y")
	s.must(err)
	if _, ok := first.Await(operator.Step(apply.StepStarted, "prepare/worker-3")); !ok {
		s.Fatalf("the first operator's step did not begin\n%s", first.Wait())
	}
	s.must(first.Freeze())
	awake := s.keepBeating()
	s.runCommand(10, []string{"apply", "-y"}, "works on this cluster", "since", "--force-unlock")
	awake()
	s.runCommand(0, []string{"apply", "-y", "--force-unlock"}, "Done.")
	s.must(first.Thaw())
	r := first.Wait()
	if r.Status == 0 {
		s.Errorf("the first operator went on after the lock was taken over\n%s", r)
	}
	s.Logf("the first operator: %s", r.Stderr)
	s.awaitHealthy()
	s.nothingToDo()
}

// keepBeating keeps the locks of a suspended operator alive until end is called. Probing all hosts may take longer than
// a lock lives without heartbeats.
func (s *scenario) keepBeating() (end func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(locks.BeatEvery); ctx.Err() == nil; {
			_, _ = operator.OnEach(ctx, s.Members(), "touch -c /var/lib/kubeone/lock/beat")
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// resetCluster ends the cluster. Its hosts are then as they were before it.
func resetCluster(s *scenario) {
	s.runCommand(2, []string{"reset", "--dry-run"},
		"asked for; etcd data, snapshots and the PKI stay until kubeone reset --purge")
	s.runCommand(15, []string{"reset"}, "without a terminal")
	s.runCommand(0, []string{"reset", "-y"}, "Done. The hosts are bare.")
	kept, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(),
		"ls -d /var/lib/kubeone-old/*/* /var/lib/etcd/kubeone-reset-*/* 2>/dev/null | grep -e etcd -e member")
	s.must(err)
	s.Logf("kept: %v", kept)
	places := []string{"/var/lib/kubeone-old/"}
	if inside := "/var/lib/etcd/kubeone-reset-"; strings.Contains(fmt.Sprint(kept), inside) { // inside a mount point
		places = append(places, inside)
	}
	s.runCommand(0, []string{"reset", "-y"}, append(places, "No changes. The hosts are bare.", "keeps")...)
	s.runCommand(2, []string{"reset", "--purge", "--dry-run"}, append(places, "delete what was kept")...)
	s.runCommand(0, []string{"reset", "-y", "--purge"}, "Done. The hosts are bare.")
	s.checkUnchanged(s.bare, s.snapshotAll())
	s.runCommand(0, []string{"reset", "-y", "--purge"}, "No changes. The hosts are bare.")
}

// installedAgain installs a cluster with a single worker on hosts that were reset.
func installedAgain(s *scenario) {
	for _, host := range s.Lab.Workers()[1:] {
		s.must(s.Lab.SetSpare(s.Context(), host, true))
	}
	s.must(s.WriteManifest())
	installPlain(s)
	s.nothingToDo()
	s.dnsNeverRestarted()
}

// interruptInstallation installs a cluster while the operator's machine and network fail again and again. Each next run
// resumes; a run that only loses its connections continues by itself.
func interruptInstallation(s *scenario) {
	at := func(way operator.Way, step string) operator.Failure {
		return operator.Failure{Way: way, Moment: operator.Moment{Event: apply.StepStarted, Step: step}}
	}
	for _, failures := range [][]operator.Failure{
		{at(operator.Kill, "prepare/cp-2")},
		{at(operator.Cut, "images/cp-1"), at(operator.Kill, "init/cp-1")},
		{at(operator.Kill, "join-worker/worker-1")},
		{at(operator.Kill, "join-etcd/cp-2")},
		{at(operator.Cut, "join-finish/cp-3"), at(operator.Kill, "record")},
	} {
		i, err := s.ApplyInterrupted(s.Context(), failures...)
		s.must(err)
		s.Logf("%5.1f s  %v", i.Took.Seconds(), failures)
		if len(i.At) != len(failures) || i.Status != -1 {
			s.Errorf("want %v and the run killed, got %d failures\n%s", failures, len(i.At), i.Result)
		}
	}
	s.runCommand(0, []string{"apply", "-y"})
	s.must(s.FetchKubeconfig(s.Context()))
	s.awaitHealthy()
	s.eventually("nothing to do", 30*time.Second, s.planIsEmpty)
	s.dnsNeverRestarted()
}
