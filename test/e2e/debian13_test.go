//go:build e2e && long

package e2e

import (
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/distro"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestDebian13 is the life of a cluster on Debian 13, with a worker on Debian 12.
func TestDebian13(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "debian13", ControlPlanes: 1, Workers: 2, SSHUser: "ops", KubernetesVersion: olderPatch,
		Debian: "trixie", DebianOf: map[string]string{"worker-2": "bookworm"},
	})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"the hosts run two releases of Debian, whose packages have the same names", releasesOfDebian},
		part{"bare hosts become a cluster", installPlain},
		part{"what runs in the cluster works", workloadRuns},
		part{olderPatch + " becomes " + newest, upgradePatch},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// releasesOfDebian checks each host's release, and the packages of the required commands.
func releasesOfDebian(s *scenario) {
	releases, err := operator.OnEach(s.Context(), s.Members(), `. /etc/os-release; echo "$ID $VERSION_ID"`)
	s.must(err)
	for host, release := range releases {
		releases[host] = strings.TrimSpace(release)
	}
	s.checkEqual("releases", map[string]string{"cp-1": "debian 13", "worker-1": "debian 13", "worker-2": "debian 12"},
		releases)

	debian, _ := distro.Find("debian")
	want := slices.Sorted(slices.Values(debian.PackagesOf(distro.Tools())))
	owners, err := operator.OnEach(s.Context(), s.Members(), `
		for tool in `+strings.Join(distro.Tools(), " ")+`; do
			file=$(readlink -f "$(command -v "$tool")")
			dpkg -S "*bin/${file##*/}" || exit 1
		done | sed 's/:.*//' | sort -u`)
	s.must(err)
	for host, packages := range owners {
		s.checkEqual("packages of "+host, want, strings.Fields(packages))
	}
}

// upgradePatch upgrades to the newest patch version.
func upgradePatch(s *scenario) {
	s.must(s.Want(s.Context(), newest))
	s.upgradePlanned(olderPatch, newest)
	s.runCommand(0, []string{"upgrade", "-y"}, "Done.")
	s.checkUpgraded(newest)
	emptyPlan(s)
}
