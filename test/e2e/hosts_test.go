//go:build e2e && long

package e2e

import (
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// hadBefore gives a host typical leftovers: CNI and runtime configuration of a containerd package, a proxy for all
// systemd units, and a unit that enables swap at boot (which containers cannot do).
const hadBefore = `mkdir -p /etc/cni/net.d /etc/systemd/system.conf.d /etc/containerd
echo 'disabled_plugins = ["cri"]' >/etc/containerd/config.toml
cat >/etc/cni/net.d/10-containerd-net.conflist <<'END'
{"cniVersion": "1.0.0", "name": "containerd-net", "plugins": [
  {"type": "bridge", "bridge": "cni9", "isGateway": true, "ipMasq": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
cat >/etc/systemd/system.conf.d/proxy.conf <<'END'
[Manager]
DefaultEnvironment=HTTP_PROXY=http://192.0.2.1:3128 HTTPS_PROXY=http://192.0.2.1:3128 http_proxy=http://192.0.2.1:3128
END
cat >/etc/systemd/system/var-swapfile.swap <<'END'
[Swap]
What=/var/swapfile
[Install]
WantedBy=swap.target
END
systemctl -q enable var-swapfile.swap && systemctl daemon-reexec`

// TestHostsAsTheyAre uses hosts that had another purpose before, and restores what they had.
func TestHostsAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "hosts", ControlPlanes: 1, Workers: 1})
	for _, host := range s.Machines() {
		s.breakHost(host, hadBefore)
	}
	s.bare = s.snapshotAll()
	s.runParts(
		part{"a host on which another Kubernetes runs is refused", otherKubernetes},
		part{"what hosts had is named, and moved aside", hadIsMovedAside},
		part{"pods are of the pod network, and nothing has the proxy", hadIsWithoutEffect},
		part{"other CNI configuration of a member is named", otherCNIOfMember},
		part{"a reset gives back what hosts had", resetCluster},
	)
}

func otherKubernetes(s *scenario) {
	worker := s.Lab.Host("worker-1")
	s.breakHost(worker, "systemd-run --quiet --unit=k3s.service sleep infinity")
	s.runCommand(10, []string{"apply", "-y"}, "another Kubernetes distribution or container runtime runs here",
		"k3s.service")
	s.breakHost(worker, "systemctl stop k3s.service")
	s.checkUnchanged(s.bare, s.snapshotAll())
}

func hadIsMovedAside(s *scenario) {
	s.runCommand(2, []string{"plan"}, "moves other CNI configuration",
		"10-containerd-net.conflist")
	installPlain(s)
	s.nothingToDo()
	for _, host := range s.Members() {
		s.breakHost(host, `[ ! -e /etc/cni/net.d/10-containerd-net.conflist ] &&
[ "$(systemctl is-enabled var-swapfile.swap)" = masked ]`)
	}
}

func hadIsWithoutEffect(s *scenario) {
	addresses := strings.Fields(s.runKubectl("get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns",
		"-o", "jsonpath={.items[*].status.podIP}"))
	for _, address := range addresses {
		if !strings.HasPrefix(address, "10.244.") {
			s.Errorf("a pod of cluster DNS has the address %s", address)
		}
	}
	if len(addresses) == 0 {
		s.Error("cluster DNS has no pods")
	}
	found, err := operator.OnEach(s.Context(), s.Members(), `grep -rl 192.0.2.1:3128 /etc/kubernetes/manifests
for unit in kubelet containerd; do
	grep -l 192.0.2.1:3128 "/proc/$(systemctl show -p MainPID --value $unit)/environ"
done; true`)
	s.must(err)
	for host, where := range found {
		if where != "" {
			s.Errorf("%s has systemd's proxy in %s", host, where)
		}
	}
}

func otherCNIOfMember(s *scenario) {
	worker := s.Lab.Host("worker-1")
	s.breakHost(worker, "echo '{}' >/etc/cni/net.d/99-later.conflist")
	s.nothingToDo()
	s.breakHost(worker, "mv /etc/cni/net.d/99-later.conflist /etc/cni/net.d/00-first.conflist")
	s.runCommand(0, []string{"plan"},
		"other CNI configuration takes precedence over the network plugin's 10-flannel.conflist: 00-first.conflist")
	s.breakHost(worker, "rm /etc/cni/net.d/00-first.conflist")
	s.nothingToDo()
}
