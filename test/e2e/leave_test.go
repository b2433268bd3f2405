//go:build e2e

package e2e

import (
	"time"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// resetWorker takes one worker out of the living cluster: its Node goes, it is bare, and nobody else notices.
func resetWorker(s *story) {
	leaving := s.Lab.Host("worker-2")
	staying := append(s.Lab.ControlPlanes(), s.Lab.Host("worker-1"))
	before := s.started(staying)
	s.run(0, []string{"reset", "-y", "--host", leaving.Hostname}, "Done. The hosts are bare.")
	s.must(s.AllReady(s.Context(), hostnames(staying)...))
	s.same("what runs on the other hosts since when", before, s.started(staying))
	now, err := operator.Snapshot(s.Context(), []*fleet.Host{leaving})
	s.must(err)
	s.unchanged(map[string][]string{leaving.Hostname: s.bare[leaving.Hostname]}, now)
}

// twoOperators: the first one joins the worker again and falls asleep over it. The second one is told who works there,
// takes over, and finishes; when the first one wakes up, the host refuses its next step.
func twoOperators(s *story) {
	first, err := s.Start(s.Context(), "apply", "-y")
	s.must(err)
	if _, ok := first.Await(operator.Step(apply.StepStarted, "prepare/worker-2")); !ok {
		s.Fatalf("the first operator's step did not begin\n%s", first.Wait())
	}
	s.must(first.Freeze())
	s.run(10, []string{"apply", "-y"}, "works on this cluster", "since", "--force-unlock")
	s.run(0, []string{"apply", "-y", "--force-unlock"}, "Done.")
	s.must(first.Thaw())
	r := first.Wait()
	if r.Status == 0 {
		s.Errorf("the first operator went on after the lock was taken over\n%s", r)
	}
	s.Logf("the first operator: %s", r.Stderr)
	s.healthy()
	s.nothingToDo()
}

// reset ends the cluster. Its hosts are then as they were before it.
func reset(s *story) {
	s.run(2, []string{"reset", "--dry-run"})
	s.run(15, []string{"reset"}, "no terminal")
	s.run(0, []string{"reset", "-y"}, "Done. The hosts are bare.")
	s.unchanged(s.bare, s.snapshot())
	s.run(0, []string{"reset", "-y"}, "No changes. The hosts are bare.")
}

// interrupted installs a cluster on the same hosts once more. Its operator's machine and its network fail again and again;
// each time the next run goes on.
func interrupted(s *story) {
	kill := func(r *operator.Running) error { return r.Kill() }
	cut := func(*operator.Running) error { return operator.CutConnections(s.Context(), s.Members()) }
	for _, moment := range []struct {
		what string
		when func(apply.Event) bool
		fail func(*operator.Running) error
	}{
		{"killed while hosts are prepared", operator.Step(apply.StepStarted, "prepare/cp-2"), kill},
		{"cut while images are imported", operator.Step(apply.StepStarted, "images/worker-1"), cut},
		{"killed while the cluster is made", operator.Step(apply.StepStarted, "init/cp-1"), kill},
		{"killed while a member joins etcd", operator.Step(apply.StepStarted, "join-etcd/cp-2"), kill},
		{"cut while a control plane joins", operator.Step(apply.StepStarted, "join-finish/cp-3"), cut},
		{"killed when a node is waited for", operator.Step(apply.StepStarted, "node-ready/worker-2"), kill},
	} {
		run, err := s.Start(s.Context(), "apply", "-y")
		s.must(err)
		event, ok := run.Await(moment.when)
		if ok {
			s.must(moment.fail(run))
		}
		r := run.Wait()
		s.Logf("%5.1f s  %s (%s, came to pass: %v), exit status %d", r.Took.Seconds(), moment.what, event.Step, ok, r.Status)
	}
	s.run(0, []string{"apply", "-y"})
	s.must(s.FetchKubeconfig(s.Context()))
	s.healthy()
	s.eventually("nothing to do", 30*time.Second, s.planIsEmpty)
	s.dnsNeverRestarted()
}
