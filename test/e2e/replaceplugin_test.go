//go:build e2e && long

package e2e

import (
	"testing"

	"sigs.k8s.io/yaml"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestReplaceNetworkPlugin replaces flannel by cilium in a living cluster, as docs/network-plugins.md says.
func TestReplaceNetworkPlugin(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "replacecni", ControlPlanes: 1, Workers: 1})
	mountBPF(s)
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"the workload runs with flannel", workloadRuns},
		part{"cilium is refused while flannel runs", ciliumRefused},
		part{"cilium takes the place of flannel", flannelReplaced},
		part{"the workload runs with cilium", workloadRuns},
		part{"network policies deny and allow across hosts", policiesHold},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// ciliumRefused changes the manifest.
func ciliumRefused(s *scenario) {
	cache, err := components.DefaultCache()
	s.must(err)
	s.Bundle, err = fleet.Bundle(s.Context(), cache, s.Lab.KubernetesVersion, "cilium", nil, s.Logf)
	s.must(err)
	var settings map[string]any
	s.must(yaml.Unmarshal([]byte(components.CNISettings("cilium")), &settings))
	s.must(s.WriteManifest(editFields(func(m map[string]any) {
		m["clusterNetwork"].(map[string]any)["cni"] = settings
	})))
	s.runCommand(15, []string{"apply", "-y"}, "the cluster runs the network plugin flannel")
}

// flannelReplaced deletes the pods of flannel, what they have left on the hosts, and the pods that flannel connected.
// Then it applies the manifest.
func flannelReplaced(s *scenario) {
	_, err := s.Kube(s.Context(), "delete", "daemonset", "-n", "kube-flannel", "kube-flannel-ds", "--cascade=foreground")
	s.must(err)
	_, err = operator.OnEach(s.Context(), s.Members(), "ip link delete flannel.1 && ip link delete cni0; "+
		"rm -f /etc/cni/net.d/10-flannel.conflist")
	s.must(err)
	_, err = s.Kube(s.Context(), "delete", "pods", "-A", "--field-selector", "spec.hostNetwork=false", "--wait=false")
	s.must(err)
	s.runCommand(2, []string{"plan"}, "remove addon flannel", "install Helm release kube-system/cilium")
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	emptyPlan(s)
}
