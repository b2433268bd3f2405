//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestDualStack makes a cluster whose Nodes, pods and Services have IPv4 and IPv6 addresses, and uses both.
func TestDualStack(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "dualstack", ControlPlanes: 1, Workers: 1, DualStack: true})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"a dual-stack cluster is installed", dualStackInstall},
		part{"Nodes have two addresses and two pod ranges", dualStackNodes},
		part{"pods reach each other by both families", dualStackPods},
		part{"a Service answers at both addresses", dualStackServices},
		part{"the family and the subnets cannot change", dualStackImmutable},
		part{"the hosts are bare again", dualStackReset},
	)
}

// dualStackManifest has a DNS cache, which the manifest of a lab switches off.
func dualStackManifest() operator.Edit {
	return operator.Replace("    deploy: false", "    deploy: true")
}

// dualStackInstall also uses the API at its IPv6 address, which the certificate must contain.
func dualStackInstall(s *scenario) {
	s.must(s.WriteManifest(dualStackManifest()))
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.must(s.FetchKubeconfig(s.Context()))
	s.nothingToDo()
	server := "--server=https://[" + s.Lab.ControlPlanes()[0].AddressIPv6 + "]:6443"
	s.checkEqual("what the API says by IPv6", "ok", s.runKubectl(server, "get", "--raw", "/readyz"))
}

func dualStackNodes(s *scenario) {
	nodes, err := s.Nodes(s.Context())
	s.must(err)
	for _, host := range s.Members() {
		node := nodes[host.Hostname]
		var internal []string
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				internal = append(internal, address.Address)
			}
		}
		s.checkEqual("addresses of "+host.Hostname, []string{host.Address, host.AddressIPv6}, internal)
		s.checkEqual("families of the pod ranges of "+host.Hostname, []string{"10.244.0.0/16 /24", "fd01::/48 /64"},
			rangesWithin(node.Spec.PodCIDRs, "10.244.0.0/16", "fd01::/48"))
	}
}

// rangesWithin names the first of the networks that contains each range, and the prefix length of the range.
func rangesWithin(ranges []string, networks ...string) []string {
	var out []string
	for _, text := range ranges {
		prefix, err := netip.ParsePrefix(text)
		for _, network := range networks {
			if err == nil && netip.MustParsePrefix(network).Contains(prefix.Addr()) {
				out = append(out, fmt.Sprintf("%s /%d", network, prefix.Bits()))
				break
			}
		}
	}
	return out
}

// dualWeb is a pod on every node, and a Service with both families in front of them.
const dualWeb = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      containers:
      - name: web
        image: ` + operator.AgnhostImage + `
        imagePullPolicy: Never
        args: [netexec, --http-port=8080, --udp-port=-1]
        readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ipFamilyPolicy: PreferDualStack, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

func dualStackPods(s *scenario) {
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	s.applyText(dualWeb)
	s.runKubectl("rollout", "status", "daemonset/web", "--timeout=180s")
	pods := s.webPods()
	for node, pod := range pods {
		s.checkEqual("families of the pod on "+node, 2, len(pod.Status.PodIPs))
	}
	for _, from := range pods {
		for node, to := range pods {
			for _, ip := range to.Status.PodIPs {
				s.connects(from, "the pod on "+node, ip.IP, "8080")
			}
		}
	}
}

// connects requests an address from a pod. The answer is larger than a packet.
func (s *scenario) connects(from corev1.Pod, what, ip, port string) {
	s.Helper()
	const size = 6000
	url := fmt.Sprintf("http://%s:8080/dial?host=%s&port=%s&protocol=http&tries=1&request=echo%%3Fmsg%%3D%s",
		from.Status.PodIP, ip, port, strings.Repeat("x", size))
	s.eventually(fmt.Sprintf("an answer of %s at %s to %s", what, ip, from.Name), time.Minute,
		func(ctx context.Context) error {
			out, err := s.Lab.ControlPlanes()[0].Exec(ctx, "curl -gs -m 10 '"+url+"'")
			if err == nil && !strings.Contains(out, strings.Repeat("x", size)) {
				err = fmt.Errorf("%.300s", out)
			}
			return err
		})
}

func dualStackServices(s *scenario) {
	var service corev1.Service
	s.must(s.Object(s.Context(), &service, "service", "web"))
	s.checkEqual("addresses of the Service", 2, len(service.Spec.ClusterIPs))
	for node, pod := range s.webPods() {
		for _, ip := range service.Spec.ClusterIPs {
			s.connects(pod, "the Service on "+node, ip, "80")
		}
	}
	for _, pod := range s.webPods() {
		s.runKubectl("exec", pod.Name, "--", "/agnhost", "connect", "web.default.svc.cluster.local:80", "--timeout=5s")
	}
	s.nothingToDo()
}

func dualStackImmutable(s *scenario) {
	for what, edit := range map[string]operator.Edit{
		"another family": operator.Replace("ipFamily: IPv4+IPv6", "ipFamily: IPv4"),
		"another subnet": operator.Replace("ipFamily: IPv4+IPv6", "ipFamily: IPv4+IPv6\n  podSubnetIPv6: fd03::/48"),
	} {
		s.must(s.WriteManifest(dualStackManifest(), edit))
		s.Logf("plan with %s", what)
		s.runCommand(15, []string{"plan"}, "ipFamily, a subnet or serviceDomainName", "cannot be changed")
	}
	s.must(s.WriteManifest(dualStackManifest()))
	s.nothingToDo()
}

// dualStackReset leaves no interface, rule or file of the second family.
func dualStackReset(s *scenario) {
	s.runCommand(0, []string{"reset", "-y", "--purge"}, "Done. The hosts are bare.")
	s.checkUnchanged(s.bare, s.snapshotAll())
}
