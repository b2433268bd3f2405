//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// The versions of cilium in scenarios.
const (
	olderCilium = "1.20.1"
	newerCilium = "1.20.2"
)

// TestCiliumCluster is the life of a dual-stack cluster with several hosts of each role, in which cilium does the work
// of kube-proxy. Both cilium and Kubernetes are upgraded under load.
func TestCiliumCluster(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "ciliumcluster", ControlPlanes: 3, Workers: 2, KubernetesVersion: olderPatch, DualStack: true,
		CNI: "cilium@" + olderCilium,
	})
	mountBPF(s)
	writeCiliumCluster(s)
	s.runParts(
		part{"bare hosts become a dual-stack cluster without kube-proxy", installCilium},
		part{"what runs in the cluster works", workloadRuns},
		part{"network policies deny and allow across hosts", policiesHold},
		part{"pods and Services answer in both families", ciliumAnswersInBothFamilies},
		part{"an address of a load balancer is announced on the local network", ciliumAnnounces},
		part{"versions that cilium cannot get are refused", ciliumVersionsRefused},
		part{"cilium " + olderCilium + " becomes " + newerCilium + " under load", ciliumUpgraded},
		part{"Kubernetes " + olderPatch + " becomes " + newest + " under load", func(s *scenario) {
			s.upgradedUnderLoad(olderPatch, newest)
		}},
		part{"a worker is destroyed and replaced", ciliumWorkerReplaced},
		part{"pods and Services answer in both families as before", ciliumAnswersInBothFamilies},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
		part{"flannel is installed on as many hosts, for comparison", flannelInstalled},
	)
}

// TestCiliumDualStack is the short life of a small dual-stack cluster in which cilium does the work of kube-proxy.
func TestCiliumDualStack(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "ciliumdual", ControlPlanes: 1, Workers: 1, KubernetesVersion: olderPatch, DualStack: true,
		CNI: "cilium@" + newerCilium,
	})
	mountBPF(s)
	writeCiliumCluster(s)
	s.runParts(
		part{"bare hosts become a dual-stack cluster without kube-proxy", installCilium},
		part{"pods and Services answer in both families", ciliumAnswersInBothFamilies},
		part{"network policies deny and allow across hosts", policiesHold},
		part{"an address of a load balancer is announced on the local network", ciliumAnnounces},
		part{"versions that cilium cannot get are refused", ciliumVersionsRefused},
		part{olderPatch + " becomes " + newest, upgradePatch},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// writeCiliumCluster writes the manifest of the lab, in which cilium replaces kube-proxy and announces addresses.
func writeCiliumCluster(s *scenario) {
	s.Helper()
	s.must(s.WriteManifest(
		operator.Replace("  kubeProxy:\n", "  kubeProxy:\n    skipInstallation: true\n"),
		operator.Replace("cilium: {", "cilium: {kubeProxyReplacement: strict, enableL2Announcements: true, "),
	))
}

// installCilium logs the time of the installation.
func installCilium(s *scenario) {
	started := time.Now()
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.Logf("%5.1f s  installation of %s with cilium", time.Since(started).Seconds(), hostnamesOf(s.Members()))
	s.must(s.FetchKubeconfig(s.Context()))
	s.awaitHealthy()
	noKubeProxy(s)
	dualStackNodes(s)
	checkCiliumVersion(s, ciliumOf(s.Lab))
	emptyPlan(s)
}

// ciliumOf returns the version of cilium that the lab was made for.
func ciliumOf(lab *fleet.Lab) string { return strings.TrimPrefix(lab.CNI, "cilium@") }

// checkCiliumVersion checks that all agents and operators are rolled out in that version.
func checkCiliumVersion(s *scenario, version string) {
	s.Helper()
	var agents appsv1.DaemonSet
	s.must(s.Object(s.Context(), &agents, "daemonset", "cilium", "-n", "kube-system"))
	s.checkEqual("agents in the version of the DaemonSet", int32(len(s.Members())), agents.Status.UpdatedNumberScheduled)
	s.checkEqual("ready agents", int32(len(s.Members())), agents.Status.NumberReady)
	var operators appsv1.Deployment
	s.must(s.Object(s.Context(), &operators, "deployment", "cilium-operator", "-n", "kube-system"))
	for _, image := range []string{
		agents.Spec.Template.Spec.Containers[0].Image, operators.Spec.Template.Spec.Containers[0].Image,
	} {
		if !strings.HasSuffix(image, ":v"+version) {
			s.Errorf("the image is %s, want version %s", image, version)
		}
	}
}

// dualDoor has a port on every Node in both families.
const dualDoor = `apiVersion: v1
kind: Service
metadata: {name: dual-door}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30081}]
`

// ciliumAnswersInBothFamilies uses pods, cluster addresses of Services, and ports of Nodes.
func ciliumAnswersInBothFamilies(s *scenario) {
	dualStackPods(s)
	dualStackServices(s)
	s.applyText(dualDoor)
	for _, host := range s.Members() {
		for _, address := range []string{host.Address, "[" + host.AddressIPv6 + "]"} {
			s.answersOutside("http://" + address + ":30081/hostname")
		}
	}
}

// answersOutside requests a URL of the workload from a host outside the cluster.
func (s *scenario) answersOutside(url string) {
	s.Helper()
	s.eventually("an answer of "+url, time.Minute, func(ctx context.Context) error {
		out, err := s.Lab.Host("lb").Exec(ctx, "curl -gfs -m 5 '"+url+"'")
		if err == nil && !strings.HasPrefix(out, "web-") {
			err = fmt.Errorf("%.100q", out)
		}
		return err
	})
}

const announced = `apiVersion: cilium.io/v2
kind: CiliumLoadBalancerIPPool
metadata: {name: pool}
spec: {blocks: [{start: ADDRESS, stop: ADDRESS}]}
---
apiVersion: cilium.io/v2alpha1
kind: CiliumL2AnnouncementPolicy
metadata: {name: all}
spec: {loadBalancerIPs: true}
---
apiVersion: v1
kind: Service
metadata: {name: announced}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// ciliumAnnounces gives a Service an unused address of the hosts' network.
func ciliumAnnounces(s *scenario) {
	octets := netip.MustParsePrefix(s.Lab.Subnet).Addr().As4()
	octets[3] = 253
	address := netip.AddrFrom4(octets).String()
	s.applyText(strings.ReplaceAll(announced, "ADDRESS", address))
	s.eventually("the Service to get the address", time.Minute, func(ctx context.Context) error {
		var service corev1.Service
		if err := s.Object(ctx, &service, "service", "announced"); err != nil {
			return err
		}
		if got := service.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != address {
			return fmt.Errorf("it has %+v", got)
		}
		return nil
	})
	s.answersOutside("http://" + address + "/hostname")
	s.runKubectl("delete", "service/announced", "ciliumloadbalancerippool/pool", "ciliuml2announcementpolicy/all")
}

// setCiliumVersion returns an edit of the version in the manifest.
func setCiliumVersion(from, to string) operator.Edit {
	return operator.Replace("version: "+from+",", "version: "+to+",")
}

func ciliumVersionsRefused(s *scenario) {
	now := ciliumOf(s.Lab)
	for version, says := range map[string]string{
		"1.20.0": "cilium " + now + " cannot become cilium 1.20.0: that would be a downgrade",
		"1.18.4": `version "1.18.4" of cilium is not supported`,
	} {
		path, err := s.Variant("cilium-"+version, setCiliumVersion(now, version))
		s.must(err)
		s.runCommand(15, []string{"plan", "-m", path}, says)
	}
	emptyPlan(s)
}

// ciliumUpgraded changes only the version of cilium. Every host gets the images before any agent is replaced.
func ciliumUpgraded(s *scenario) {
	under := s.startLoad()
	s.must(s.WantCNI(s.Context(), "cilium@"+newerCilium, setCiliumVersion(olderCilium, newerCilium)))
	s.runCommand(2, []string{"plan", "--verbose"}, "upgrade Helm release kube-system/cilium",
		"version "+olderCilium+" -> "+newerCilium, "chart digest sha256:", "the host lacks images of cilium "+newerCilium)
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.endLoad(under)
	checkCiliumVersion(s, newerCilium)
	dualStackPods(s)
	emptyPlan(s)
}

// ciliumWorkerReplaced destroys a worker. A new machine has its name and address.
func ciliumWorkerReplaced(s *scenario) {
	host := s.Lab.Host("worker-2")
	s.must(s.Lab.Rebuild(s.Context(), host))
	s.must(mountBPFOn(s.Context(), host))
	maps.Copy(s.bare, s.snapshotOf(host))
	writeCiliumCluster(s)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.awaitHealthy()
	checkCiliumVersion(s, newerCilium)
	emptyPlan(s)
}

// flannelInstalled logs the time to install the same cluster with flannel.
func flannelInstalled(s *scenario) {
	other := newScenario(s.T, fleet.Options{
		Name: "ciliumflannel", ControlPlanes: 3, Workers: 2, KubernetesVersion: olderPatch, DualStack: true,
	})
	started := time.Now()
	other.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.Logf("%5.1f s  installation of %s with flannel", time.Since(started).Seconds(), hostnamesOf(other.Members()))
}
