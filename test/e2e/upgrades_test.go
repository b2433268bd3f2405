//go:build e2e && upgrades

package e2e

import (
	"testing"

	"kubeone/test/lab/fleet"
)

// TestUpgrades are the upgrades of a cluster with three control-plane hosts and three workers: one of the patch version,
// and one after the other to the next two minor versions. They take long: make upgrades.
func TestUpgrades(t *testing.T) {
	for _, versions := range [][]string{{olderPatch, newest}, {"1.34.4", "1.35.4", newest}} {
		t.Run(versions[0], func(t *testing.T) {
			s := begin(t, fleet.Options{Name: "upgrades", ControlPlanes: 3, Workers: 3, KubernetesVersion: versions[0]})
			s.founded()
			for n, version := range versions[1:] {
				s.chapter(versions[n]+" becomes "+version, func(s *story) { s.upgradedUnderLoad(versions[n], version) })
			}
		})
	}
}

// founded makes a cluster of the bare hosts.
func (s *story) founded() {
	s.Helper()
	s.run(0, []string{"apply", "-y"}, "Done.")
	s.must(s.FetchKubeconfig(s.Context()))
	s.must(s.Runs(s.Context(), s.Lab.KubernetesVersion))
}

// upgradedUnderLoad is an upgrade that nobody interrupts.
func (s *story) upgradedUnderLoad(from, to string) {
	under := s.loaded()
	s.must(s.Want(s.Context(), to))
	s.upgradePlanned(from, to)
	s.run(0, []string{"apply", "-y"}, "Done.")
	s.upgraded(to)
	s.unharmed(under)
	emptyPlanAtOnce(s)
}
