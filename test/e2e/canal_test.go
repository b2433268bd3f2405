//go:build e2e && long

package e2e

import (
	"slices"
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestCanal keeps the objects of a published manifest in a cluster. The manifest is a stand-in: flannel is real in it,
// but the parts of Calico do nothing, so network policies have no effect.
func TestCanal(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "canal", ControlPlanes: 1, Workers: 1, CNI: "canal"})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"the workload runs", workloadRuns},
		part{"the manifest is needed only to apply it", manifestIsNeeded},
		part{"a changed MTU reaches the pods", mtuChanged},
		part{"a DaemonSet that is missing is made again", daemonSetDeleted},
		part{"another plugin is refused", otherPlugin},
		part{"nothing is left on the hosts", resetCluster},
	)
}

// manifestIsNeeded plans without the bundle. Neither the cache nor the official location has the manifest.
func manifestIsNeeded(s *scenario) {
	s.planWithoutBundle(4, "No changes. The cluster matches the manifest, except for: canal (could not be compared).")
}

// planWithoutBundle plans with the official locations, which do not answer.
func (s *scenario) planWithoutBundle(status int, texts ...string) {
	bundle := s.Bundle
	defer func() { s.Bundle = bundle }()
	s.Bundle = ""
	s.Environment = append(s.Environment, "XDG_CACHE_HOME="+s.T.TempDir())
	defer func() { s.Environment = s.Environment[:len(s.Environment)-1] }()
	s.runCommand(status, []string{"plan"}, texts...)
}

func mtuChanged(s *scenario) {
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		network, _ := all["clusterNetwork"].(map[string]any)
		network["cni"] = map[string]any{"canal": map[string]any{"mtu": 1400}}
	})))
	s.planWithoutBundle(2, "canal-manifest")
	s.runCommand(0, []string{"apply", "-y"}, "apply addon canal", "Done. The cluster matches the manifest.")
	s.checkEqual("the MTU in the cluster", "1400", s.runKubectl("-n", "kube-system", "get", "configmap", "canal-config",
		"-o", "jsonpath={.data.veth_mtu}"))
	files, err := operator.OnEach(s.Context(), s.Members(), "cat /etc/cni/net.d/10-canal.conflist")
	s.must(err)
	for host, text := range files {
		if !strings.Contains(text, `"mtu": 1400`) {
			s.Errorf("%v: the configuration of the container runtime is\n%s", host, text)
		}
	}
	s.nothingToDo()
}

func daemonSetDeleted(s *scenario) {
	s.runKubectl("-n", "kube-system", "delete", "daemonset/canal", "--wait=true")
	s.runCommand(2, []string{"plan"}, "apply addon canal")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	workloadRuns(s)
}

func otherPlugin(s *scenario) {
	s.must(s.WriteManifest(func(manifest string) string {
		return strings.Replace(manifest, "canal: {}", "flannel: {}", 1)
	}))
	before := s.runKubectl("get", "daemonsets", "-A", "-o", "name")
	s.runCommand(15, []string{"apply", "-y"}, "the cluster runs the network plugin canal",
		"set clusterNetwork.cni to canal")
	after := s.runKubectl("get", "daemonsets", "-A", "-o", "name")
	if !slices.Equal(strings.Fields(before), strings.Fields(after)) {
		s.Errorf("a refused run changed %q to %q", before, after)
	}
	s.must(s.WriteManifest())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
}
