//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/e2e/load"
	"kubeone/test/e2e/operator"
)

// The versions before and after upgrades.
const (
	olderPatch = "1.36.1"
	newest     = "1.36.3"
)

// upgradeCluster upgrades to a newer patch version. The operator's machine fails twice: while a control-plane host
// changes, and when a worker is cordoned and drained.
func upgradeCluster(s *scenario) {
	s.must(s.Want(s.Context(), newest))
	s.upgradedWithKills(s.upgradePlanned(olderPatch, newest))
	s.checkUpgraded(newest)
}

// startLoad starts a load on the cluster. End it with unharmed.
func (s *scenario) startLoad() *load.Load {
	s.Helper()
	l, err := s.StartLoad(s.Context())
	s.must(err)
	return l
}

// endLoad ends the load and checks its report.
func (s *scenario) endLoad(l *load.Load) {
	s.Helper()
	report, err := l.Stop(s.Context())
	s.must(err)
	s.Logf("%s", report)
	if err := report.Err(); err != nil {
		s.Error(err)
	}
}

// upgradePlanned checks that the plan names both versions and upgrades each host once, control planes before workers.
func (s *scenario) upgradePlanned(from, to string) plan.Plan {
	s.Helper()
	var p plan.Plan
	// On a busy machine a member of etcd may answer late, and then the plan is about that.
	s.eventually("a plan of the upgrade", time.Minute, func(ctx context.Context) (err error) {
		r := s.Run(ctx, "plan")
		if r.Status != 2 || !strings.Contains(r.Stdout, from) || !strings.Contains(r.Stdout, to) {
			return fmt.Errorf("want %s and %s to be printed\n%s", from, to, r)
		}
		if p, err = s.Plan(ctx); err == nil && len(p.Operator) > 0 {
			err = fmt.Errorf("it is about something else: %+v", p.Operator)
		}
		return err
	})
	var hosts []string
	for _, step := range p.Steps {
		if isUpgrade(step) {
			hosts = append(hosts, p.Hosts[step.Host])
		}
	}
	s.checkEqual("hosts that are upgraded", hostnamesOf(s.Members()), hosts)
	if p.Again != "" || p.Blocked != "" || len(p.Operator) > 0 {
		s.Errorf("the plan does not end with the upgrade: %+v", p)
	}
	return p
}

func isUpgrade(of plan.Step) bool {
	return of.Intent.Kind == step.UpgradeControlPlane || of.Intent.Kind == step.UpgradeWorker
}

// upgradedWithKills kills the upgrade while the second control-plane host changes and when the last worker has been
// drained. Then it lets a run finish.
func (s *scenario) upgradedWithKills(p plan.Plan) {
	for _, moment := range []operator.Moment{
		{Event: apply.StepStarted, Step: nthStepID(s, p, step.UpgradeControlPlane, 1)},
		{Event: apply.StepDone, Step: nthStepID(s, p, step.DrainNode, len(s.Members())-1)},
	} {
		i, err := s.ApplyInterrupted(s.Context(), operator.Failure{Way: operator.Kill, Moment: moment})
		s.must(err)
		s.Logf("%5.1f s  killed at %s", i.Took.Seconds(), moment)
		if len(i.At) != 1 || i.Status != -1 {
			s.Errorf("want the run killed at %s\n%s", moment, i.Result)
		}
	}
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
}

// nthStepID returns the ID of the n-th step of that kind in a plan, counted from 0.
func nthStepID(s *scenario, p plan.Plan, kind step.Kind, n int) string {
	s.Helper()
	steps := slices.DeleteFunc(slices.Clone(p.Steps), func(step plan.Step) bool { return step.Intent.Kind != kind })
	if n >= len(steps) {
		s.Fatalf("the plan has %d steps of the kind %s, want more than %d", len(steps), kind, n)
	}
	return steps[n].ID
}

// checkUpgraded checks that everything runs the version, and that every node is schedulable.
func (s *scenario) checkUpgraded(version string) {
	s.Helper()
	s.everythingRuns(version)
	s.runCommand(0, []string{"status"}, version)
}

// everythingRuns waits until everything runs the version and every node is schedulable. On a busy machine a node may
// report late, and an API server or a member of etcd may take longer than two seconds.
func (s *scenario) everythingRuns(version string) {
	s.Helper()
	s.eventually("all of the cluster to run "+version, time.Minute, func(ctx context.Context) error {
		return s.Runs(ctx, version)
	})
}

// emptyPlan checks that the plan of an up-to-date cluster is empty, and logs the fastest time of three. The bench
// judges that time against a baseline.
func emptyPlan(s *scenario) {
	s.eventually("nothing to do", 30*time.Second, s.planIsEmpty)
	fastest := time.Hour
	for range 3 {
		fastest = min(fastest, s.runCommand(0, []string{"plan"}, "No changes").Took)
	}
	s.Logf("the fastest of three empty plans took %s", fastest)
}
