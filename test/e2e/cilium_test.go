//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestCilium is the life of a cluster with the network plugin cilium: first with kube-proxy, then without.
func TestCilium(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "cilium", ControlPlanes: 1, Workers: 1, KubernetesVersion: olderPatch, CNI: "cilium",
	})
	mountBPF(s)
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"what runs in the cluster works", workloadRuns},
		part{"network policies deny and allow across hosts", policiesHold},
		part{"Helm lists the plugin, and nothing is left to do", pluginIsRelease},
		part{"a deleted DaemonSet is found and applied again", pluginRepaired},
		part{olderPatch + " becomes " + newest, upgradePatch},
		part{"cilium takes the place of kube-proxy", kubeProxyReplaced},
		part{"what runs in the cluster works without kube-proxy", workloadRuns},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// TestCiliumWithoutKubeProxy installs a cluster that never has kube-proxy.
func TestCiliumWithoutKubeProxy(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "ciliumkpr", ControlPlanes: 1, Workers: 1, CNI: "cilium"})
	mountBPF(s)
	replaceKubeProxy(s)
	s.runParts(
		part{"bare hosts become a cluster without kube-proxy", installPlain},
		part{"there is no kube-proxy", noKubeProxy},
		part{"what runs in the cluster works", workloadRuns},
		part{"network policies deny and allow across hosts", policiesHold},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// mountBPF mounts the file system of eBPF on all hosts, and takes the snapshot of bare hosts.
func mountBPF(s *scenario) {
	s.must(mountBPFOn(s.Context(), s.Machines()...))
	s.bare = s.snapshotAll()
}

// mountBPFOn mounts the file system of eBPF, as systemd does when a real host starts.
func mountBPFOn(ctx context.Context, hosts ...*fleet.Host) error {
	_, err := operator.OnEach(ctx, hosts, "mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf")
	return err
}

const (
	denyAll = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}
`
	allowFriends = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {friend: "yes"}}}]}]
`
)

// policiesHold denies all traffic to the pods, then allows that of one pod on another host.
func policiesHold(s *scenario) {
	pods := s.webPods()
	reach := func(from, to corev1.Pod) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Kube(ctx, "exec", from.Name, "--", "/agnhost", "connect", to.Status.PodIP+":8080", "--timeout=3s")
			return err
		}
	}
	refused := func(from, to corev1.Pod) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := reach(from, to)(ctx); err == nil {
				return fmt.Errorf("%s on %s reaches %s", from.Name, from.Spec.NodeName, to.Status.PodIP)
			}
			return nil
		}
	}
	var from, to corev1.Pod
	for _, pod := range pods {
		from, to = to, pod
	}
	s.eventually("pods reach each other without policies", time.Minute, reach(from, to))
	s.applyText(denyAll)
	s.eventually("a policy denies traffic", time.Minute, refused(from, to))
	s.applyText(allowFriends)
	_, err := s.Kube(s.Context(), "label", "pod", from.Name, "friend=yes")
	s.must(err)
	s.eventually("a policy allows traffic of one pod", time.Minute, reach(from, to))
	s.eventually("and of no other", time.Minute, refused(to, from))
	_, err = s.Kube(s.Context(), "delete", "networkpolicy", "--all")
	s.must(err)
	s.eventually("pods reach each other again", time.Minute, reach(to, from))
}

// pluginIsRelease checks the Helm release of the plugin.
func pluginIsRelease(s *scenario) {
	cache, err := components.DefaultCache()
	s.must(err)
	helm, err := components.NewBuilder(cache, s.Logf).Helm(s.Context())
	s.must(err)
	cmd := exec.CommandContext(s.Context(), helm, "list", "-A", "-o", "json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.Dir, "admin.conf"))
	out, err := cmd.Output()
	s.must(err)
	var list []struct{ Name, Namespace, Status string }
	s.must(json.Unmarshal(out, &list))
	if len(list) != 1 || list[0].Name != "cilium" || list[0].Namespace != "kube-system" || list[0].Status != "deployed" {
		s.Errorf("helm list: %+v", list)
	}
	emptyPlan(s)
}

// pluginRepaired deletes the agents' DaemonSet.
func pluginRepaired(s *scenario) {
	_, err := s.Kube(s.Context(), "delete", "daemonset", "cilium", "-n", "kube-system")
	s.must(err)
	s.runCommand(2, []string{"plan"}, "DaemonSet kube-system/cilium")
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	var agents appsv1.DaemonSet
	s.must(s.Object(s.Context(), &agents, "daemonset", "cilium", "-n", "kube-system"))
	s.checkEqual("ready agents", int32(len(s.Members())), agents.Status.NumberReady)
	emptyPlan(s)
}

// replaceKubeProxy changes the manifest so that cilium does the work of kube-proxy.
func replaceKubeProxy(s *scenario) {
	s.must(s.WriteManifest(editFields(func(m map[string]any) {
		network := m["clusterNetwork"].(map[string]any)
		network["kubeProxy"] = map[string]any{"skipInstallation": true}
		network["cni"].(map[string]any)["cilium"].(map[string]any)["kubeProxyReplacement"] = "strict"
	})))
}

// kubeProxyReplaced removes kube-proxy from the cluster.
func kubeProxyReplaced(s *scenario) {
	replaceKubeProxy(s)
	s.runCommand(2, []string{"plan"}, "remove kube-proxy")
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	noKubeProxy(s)
	emptyPlan(s)
}

func noKubeProxy(s *scenario) {
	out, err := s.Kube(s.Context(), "get", "daemonsets,pods,configmaps", "-n", "kube-system", "-o", "name")
	s.must(err)
	if strings.Contains(out, "/kube-proxy") {
		s.Errorf("kube-proxy is still there:\n%s", out)
	}
}
