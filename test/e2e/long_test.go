//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestUpgrades upgrades a cluster of three control-plane hosts and three workers: to one newer patch version, then to
// the next two minor versions.
func TestUpgrades(t *testing.T) {
	for n, versions := range [][]string{{olderPatch, newest}, {"1.34.4", "1.35.4", newest}} {
		t.Run(versions[0], func(t *testing.T) {
			s := newScenario(t, fleet.Options{Name: "upgrades", ControlPlanes: 3, Workers: 3,
				KubernetesVersion: versions[0]})
			s.foundCluster()
			for last, version := range versions[1:] {
				s.runPart(versions[last]+" becomes "+version,
					func(s *scenario) { s.upgradedUnderLoad(versions[last], version) })
			}
			if n == 0 {
				s.runPart("the same version once more", onceMore)
				s.runPart("certificates are renewed", certificatesRenewed)
			}
		})
	}
}

// TestLivingCluster covers the life between installation and reset: operators make mistakes, hosts hang, and files and
// objects are edited by hand. Some hosts have separate disks where others have directories.
func TestLivingCluster(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "living", ControlPlanes: 3, Workers: 2, SpareWorkers: 1, SSHUser: "ops"})
	s.breakHost(s.Lab.Host("cp-2"), mountCommand("/var/lib/etcd"))
	s.breakHost(s.Lab.Host("worker-3"), mountCommand("/var/lib/containerd")+mountCommand("/var/lib/kubelet"))
	s.bare = s.snapshotAll()
	s.runParts(
		part{"bare hosts become a cluster", installCluster},
		part{"what runs in the cluster works", checkWorkload},
		part{"hosts are recognised in any order, under any ID, and with their addresses swapped", checkIdentities},
		part{"hosts whose role the manifest changes are refused, whatever is asked", rolesChanged},
		part{"edited objects are reported and restored", liveObjects},
		part{"edited files on hosts are reported and restored, except static pods", editedFiles},
		part{"a cluster with another CA than the known one is refused", anotherCA},
		part{"snapshots and backups hold what the cluster has", checkBackups},
		part{"another worker joins", addWorker},
		part{"a host that hangs is named, and is no harm", pausedHost},
		part{"a manifest that is not for this cluster is refused", wrongManifest},
		part{"one worker leaves, and is bare again", resetWorker},
		part{"two operators do not work at the same time", twoOperators},
		part{"a living control-plane host is replaced", nodeReplaced(1)},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
		part{"what is wrong with bare hosts is said, and nothing is changed", badHosts},
		part{"what is wrong with the input is said, and nothing is changed", badInput},
	)
}

// TestInstallations installs a cluster through failures of the operator's machine, resets its hosts, and installs
// again.
func TestInstallations(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "installations", ControlPlanes: 3, Workers: 2, SSHUser: "ops"})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"an installation that is cut off again and again comes to its end", interruptInstallation},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
		part{"the same hosts become a cluster again", installedAgain},
	)
}

// TestReplacements replaces the same control-plane host twice, replaces one of two destroyed workers, and has two
// control-plane hosts return that were considered destroyed.
func TestReplacements(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "replacements", ControlPlanes: 3, Workers: 2, SSHUser: "ops"})
	s.breakHost(s.Lab.Host("cp-2"), mountCommand("/var/lib/etcd"))
	s.bare = s.snapshotAll()
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"a living control-plane host is replaced, twice", nodeReplaced(2)},
		part{"two workers are killed for good; one is replaced, one is removed", workersKilled},
		part{"two that were only cut off come back together", cutOffComeBack},
	)
}

// TestReconfiguration changes settings of a cluster in use, and reverts them.
func TestReconfiguration(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "settings", ControlPlanes: 3, Workers: 2, SSHUser: "ops"})
	s.bare = map[string][]string{}
	s.runParts(part{"bare hosts become a cluster", installPlain})
	under := s.startLoad()
	s.runParts(part{"settings of all hosts change at once", reconfigureCluster})
	s.endLoad(under)
	s.runParts(
		part{"settings that are refused are taken back", settingsRefused},
		part{"all becomes as it was, through two failures of the operator's machine", reconfiguredBack},
		part{"kube-proxy and cluster DNS follow the manifest", proxyFollowsTheManifest},
		part{"a registry wants a password, and then another one", credentialsChange},
		part{"unneeded credentials are removed", credentialsEnd},
	)
}

// proxyFollowsTheManifest changes the mode of kube-proxy and the number of DNS servers, which then have a budget, and
// reverts both.
func proxyFollowsTheManifest(s *scenario) {
	other, err := s.Variant("iptables", editFields(func(all map[string]any) {
		all["clusterNetwork"].(map[string]any)["kubeProxy"] = map[string]any{
			"iptables": map[string]any{}, "conntrack": map[string]any{"maxPerCore": 0, "min": 0},
		}
		setFeatures(all, map[string]any{"coreDNS": map[string]any{
			"replicas": 3, "deployPodDisruptionBudget": true,
		}})
	}))
	s.must(err)
	before := s.runKubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "-o", "name")
	s.runCommand(0, []string{"apply", "-y", "-m", other}, "ConfigMap kube-system/kube-proxy differs in mode",
		"Deployment kube-system/coredns differs in spec.replicas", "Done. The cluster matches the manifest.")
	s.checkEqual("kube-proxy's mode", "iptables", s.proxyMode())
	s.checkEqual("DNS servers", "3", s.dnsServers())
	s.checkEqual("DNS servers that a drain may take away", "1",
		s.runKubectl("-n", "kube-system", "get", "pdb", "coredns", "-o", "jsonpath={.spec.maxUnavailable}"))
	after := s.runKubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "-o", "name")
	for pod := range strings.FieldsSeq(before) {
		if strings.Contains(after, pod) {
			s.Errorf("%s has the configuration of before", pod)
		}
	}
	none, err := s.Variant("no-budget", editFields(func(all map[string]any) {
		setFeatures(all, map[string]any{"coreDNS": map[string]any{"deployPodDisruptionBudget": false}})
	}))
	s.must(err)
	s.runCommand(0, []string{"apply", "-y", "-m", none}, "remove addon coredns-pdb",
		"Done. The cluster matches the manifest.")
	s.checkEqual("budgets of DNS servers", "", s.runKubectl("-n", "kube-system", "get", "pdb", "-o", "name"))
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("kube-proxy's mode", "nftables", s.proxyMode())
	s.checkEqual("DNS servers: any number will do", "3", s.dnsServers())
}

// dnsServers returns the desired number of DNS servers.
func (s *scenario) dnsServers() string {
	s.Helper()
	return s.runKubectl("-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.spec.replicas}")
}

// TestUpgradeOnTheWay upgrades by two minor versions in one run, through a version of the one between.
func TestUpgradeOnTheWay(t *testing.T) {
	const oldest = "1.34.4"
	s := newScenario(t, fleet.Options{Name: "way", ControlPlanes: 1, Workers: 1, KubernetesVersion: oldest})
	s.foundCluster()
	library := []string{"--bundle", s.Bundle}
	for _, version := range []string{olderMinor, newest} {
		s.must(s.Want(t.Context(), version))
		library = append(library, "--bundle", s.Bundle)
	}
	onTheWay := "Intermediate version: Kubernetes " + olderMinor
	s.runCommand(2, append([]string{"plan", "--through", olderMinor}, library...), onTheWay, oldest)
	s.runCommand(0, append([]string{"apply", "-y", "--through", olderMinor}, library...), onTheWay,
		"Done. The cluster matches the manifest.")
	s.checkUpgraded(newest)
	s.runCommand(0, []string{"plan", "-l", "kubernetes.io/hostname=worker-1"}, "No changes")
	s.runCommand(15, []string{"plan", "-l", "kubernetes.io/hostname=nobody"}, "has a Node that matches the selector")
	emptyPlan(s)
}

// TestFiveControlPlanes extends a cluster of three control-plane hosts to five, and destroys two of them.
func TestFiveControlPlanes(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "five", ControlPlanes: 5, Workers: 1, SSHUser: "ops"})
	for _, host := range s.Lab.ControlPlanes()[3:] {
		s.must(s.Lab.SetSpare(t.Context(), host, true))
	}
	s.must(s.WriteManifest())
	s.bare = map[string][]string{}
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"three control-plane hosts become five", controlPlaneGrows},
		part{"two of five control-plane hosts are killed for good and replaced",
			controlPlanesReplaced(5, "cp-1", "cp-4")},
	)
}

// TestOnlyControlPlane has a single control-plane host. Its API server does not start during an upgrade because of a
// flag in the manifest, and its kubelet does not start during a roll-out because of settings. Each run resumes after
// the correction.
func TestOnlyControlPlane(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "only", ControlPlanes: 1, Workers: 1, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"the upgrade stops where the API server does not start", func(s *scenario) {
			s.writeObjects("before", 20)
			s.must(s.Want(s.Context(), newest))
			s.must(s.WriteManifest(editFields(func(all map[string]any) {
				all["versions"] = map[string]any{"kubernetes": newest}
				all["controlPlaneComponents"] = map[string]any{
					"apiServer": map[string]any{"flags": map[string]any{"no-such-flag": "true"}},
				}
			})))
			s.runCommand(16, []string{"apply", "-y"}, "this host's API server in version "+newest,
				"kube-apiserver says: Error: unknown flag: --no-such-flag")
			s.runCommand(2, []string{"plan"}, "its upgrade to "+newest+" has started, but no API server answers")
		}},
		part{"with the flag gone from the manifest, it comes to its end", func(s *scenario) {
			s.must(s.WriteManifest(editFields(func(all map[string]any) {
				all["versions"] = map[string]any{"kubernetes": newest}
			})))
			s.eventually("upgraded", 10*time.Minute, func(ctx context.Context) error {
				if r := s.Run(ctx, "apply", "-y"); r.Status != 0 {
					return errors.New(r.String())
				}
				return nil
			})
			s.checkUpgraded(newest)
			s.checkObjectCount("before", 20)
		}},
		part{"a roll-out stops where the kubelet refuses its settings", func(s *scenario) {
			s.must(s.WriteManifest(editFields(func(all map[string]any) {
				all["versions"] = map[string]any{"kubernetes": newest}
				all["kubeletConfig"] = map[string]any{"systemReserved": map[string]any{"cpu": "100000"}}
			})))
			s.runCommand(16, []string{"apply", "-y", "--force-upgrade"}, "the kubelet ended",
				"correct what it says, in the manifest or on the host, and apply again", "invalid Node Allocatable configuration")
			s.runCommand(2, []string{"plan"}, "a change to this host has started, but its kubelet is not running",
				"regenerate kubelet-settings")
		}},
		part{"with the settings corrected, it comes to its end", func(s *scenario) {
			s.must(s.WriteManifest(editFields(func(all map[string]any) {
				all["versions"] = map[string]any{"kubernetes": newest}
			})))
			s.eventually("rolled out", 10*time.Minute, func(ctx context.Context) error {
				if r := s.Run(ctx, "apply", "-y"); r.Status != 0 {
					return errors.New(r.String())
				}
				return nil
			})
			s.checkUpgraded(newest)
			s.checkObjectCount("before", 20)
		}},
	)
}

// controlPlaneGrows adds the spare control-plane hosts to the manifest.
func controlPlaneGrows(s *scenario) {
	old := s.Members()
	before := s.readStarted(old)
	for _, host := range s.Lab.Spares() {
		s.must(s.Lab.SetSpare(s.Context(), host, false))
	}
	s.must(s.WriteManifest())
	s.checkEqual("hosts with steps", []string{"cp-4", "cp-5"}, s.plannedHosts())
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.awaitHealthy()
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(old))
}

// foundCluster installs a cluster on the bare hosts.
func (s *scenario) foundCluster() {
	s.Helper()
	journal := filepath.Join(s.TempDir(), "run.jsonl")
	s.runCommand(0, []string{"install", "-y", "--log-file", journal}, "Done.")
	text, err := os.ReadFile(journal)
	s.must(err)
	if !strings.Contains(string(text), `"run-finished"`) {
		s.Errorf("the journal does not tell the run's end:\n%s", text)
	}
	s.must(s.FetchKubeconfig(s.Context()))
	s.everythingRuns(s.Lab.KubernetesVersion)
}

// upgradedUnderLoad is an uninterrupted upgrade that also changes settings.
func (s *scenario) upgradedUnderLoad(from, to string) {
	under := s.startLoad()
	s.must(s.Want(s.Context(), to))
	s.upgradePlanned(from, to)
	s.runCommand(0, []string{"upgrade", "-y", "--max-unavailable", "50%", "--max-parallel", "1", "--no-canary",
		"--drain-timeout", "10m", "--on-drain-timeout", "stop"}, "Done.")
	s.checkUpgraded(to)
	s.endLoad(under)
	emptyPlan(s)
}

// onceMore rolls the configuration out to the control-plane hosts although nothing differs, as the guide describes.
// Their certificates are new afterwards, and the workers do not notice.
func onceMore(s *scenario) {
	certificates := func() map[string]string {
		all, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(), "sha256sum /etc/kubernetes/pki/apiserver.crt")
		s.must(err)
		return all
	}
	old, workers := certificates(), s.readStarted(s.Lab.Workers())
	s.runCommand(2, []string{"plan", "--force-upgrade"}, hostnamesOf(s.Members())...)
	controlPlanes := strings.Join(hostnamesOf(s.Lab.ControlPlanes()), ",")
	s.runCommand(0, []string{"upgrade", "-y", "--force", "--host", controlPlanes}, "Done.")
	for host, sum := range certificates() {
		if sum == old[host] {
			s.Errorf("%s has the certificate of before", host)
		}
	}
	s.awaitHealthy()
	s.checkEqual("what runs on the workers since when", workers, s.readStarted(s.Lab.Workers()))
	emptyPlan(s)
}

// TestDisasters causes one failure after the other, which apply repairs, and then destroys all control-plane hosts. It
// counts the objects written before. The recovered cluster then loses the host where the recovery began.
// TestFiveControlPlanes covers five control-plane hosts.
func TestDisasters(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "disasters", ControlPlanes: 3, Workers: 1, SSHUser: "ops"})
	s.bare = map[string][]string{}
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"a kubelet is stopped", kubeletStopped},
		part{"a container runtime is stopped", containerdStopped},
		part{"a worker's kubelet.conf is deleted", kubeletConfDeleted},
		part{"the etcd data of one member is destroyed", etcdDataDestroyed},
		part{"all are destroyed and replaced by empty hosts, and a backup brings the cluster back", allDestroyed},
		part{"a control-plane host is killed for good and replaced", controlPlanesReplaced(3, "cp-1")},
		part{"what must not be removed is refused", removalsRefused},
	)
}
