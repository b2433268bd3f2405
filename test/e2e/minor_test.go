//go:build e2e && long

package e2e

import (
	"strings"
	"testing"

	"kubeone/internal/release"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// nextMinor is a version of the minor after the one in most scenarios, with another minor of etcd.
const nextMinor = "1.37.2"

// TestUpgradeToTheNextMinor upgrades a cluster in use to the newest minor version that kubeone knows. No write is lost,
// and no request fails after two retries.
func TestUpgradeToTheNextMinor(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "minor", ControlPlanes: 3, Workers: 2, SSHUser: "ops", KubernetesVersion: newest,
	})
	s.foundCluster()
	s.runPart(newest+" becomes "+nextMinor, func(s *scenario) {
		under := s.startLoad()
		s.must(s.Want(s.Context(), nextMinor))
		s.upgradePlanned(newest, nextMinor)
		s.runCommand(0, []string{"upgrade", "-y"}, "Done.")
		s.checkUpgraded(nextMinor)
		report, err := under.Stop(s.Context())
		s.must(err)
		s.Logf("%s", report)
		if err := report.Err(); err != nil {
			s.Error(err)
		}
		s.checkEqual("writes that were lost", 0, len(report.Client.Lost))
		s.checkEqual("requests that failed after two retries", 0, report.Client.Failed)
		s.goesWith(nextMinor)
		emptyPlan(s)
	})
}

// goesWith checks that etcd and cluster DNS have the versions that belong to a Kubernetes version.
func (s *scenario) goesWith(kubernetes string) {
	s.Helper()
	want, err := release.VersionsFor(kubernetes)
	s.must(err)
	images, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(),
		"sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml")
	s.must(err)
	for host, image := range images {
		if !strings.HasSuffix(strings.TrimSpace(image), "/etcd:"+want.Etcd) {
			s.Errorf("%s runs etcd as %s, want version %s", host, image, want.Etcd)
		}
	}
	dns := s.runKubectl("-n", "kube-system", "get", "deployment", "coredns", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}")
	if !strings.HasSuffix(strings.TrimSpace(dns), ":"+want.CoreDNS) {
		s.Errorf("cluster DNS runs as %s, want version %s", dns, want.CoreDNS)
	}
}
