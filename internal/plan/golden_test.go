package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
	"kubeone/internal/testutil/golden"
)

// planText writes all of a plan for people: a paragraph a step, its intent as JSON.
func planText(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "routes: %s\n", strings.Join(p.Routes, ", "))
	for _, s := range p.Steps {
		intent, err := json.Marshal(s.Intent)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "\n%s %s: %s (%s)\n", s.Action, s.ID, s.Title, s.Reason)
		for _, line := range [][2]string{
			{"host", s.Host}, {"risk", string(s.Risk)}, {"needs", strings.Join(s.Needs, ", ")},
			{"changes", strings.Join(s.Changes, "; ")}, {"intent", string(intent)},
		} {
			if line[1] != "" {
				fmt.Fprintf(&b, "    %s: %s\n", line[0], line[1])
			}
		}
	}
	for _, o := range p.Operator {
		fmt.Fprintf(&b, "\n! %s %s\n", o.Host, o.Reason()) // what to do is worded, and tested, elsewhere
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	for _, line := range [][2]string{{"again", p.Again}, {"blocked", p.Blocked}} {
		if line[1] != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", line[0], line[1])
		}
	}
	return b.String()
}

func pinned(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

// goldenWorlds returns those whose plans are pinned, by the name of the golden file.
func goldenWorlds() map[string]func() decide.Input {
	return map[string]func() decide.Input{
		"install-3-1": func() decide.Input { return bareCluster(3, 1) },
		"install-1":   func() decide.Input { return bareCluster(1, 0) },
		"install-downloads": func() decide.Input {
			in := bareCluster(1, 0)
			in.Want.Artifacts = testArtifacts(false)
			in.Want.ControlPlane[0].Labels = map[string]string{"zone": "a", "old-": ""}
			in.Want.ControlPlane[0].Taints = []desired.Taint{{Key: "only", Effect: "NoSchedule"}}
			changeHost(in, "cp-1", func(h *observed.Host) { h.Tools = []string{"iptables"} })
			return in
		},
		"install-firewalls": func() decide.Input {
			in := bareCluster(1, 2)
			changeHost(in, "cp-1", func(h *observed.Host) { h.Firewalls = []observed.Firewall{{Name: "firewalld"}} })
			changeHost(in, "w-1", func(h *observed.Host) { h.Firewalls = []observed.Firewall{{Name: "ufw"}} })
			return in
		},
		"firewalls-off": func() decide.Input {
			in := healthyCluster(1, 2)
			in.Want.Firewall = desired.FirewallDisable
			changeHost(in, "w-2", func(h *observed.Host) {
				h.Firewalls = []observed.Firewall{{Name: "ufw", Ours: true}, {Name: "firewalld"}}
			})
			return in
		},
		"firewall-on-again": func() decide.Input {
			in := healthyCluster(1, 2)
			changeHost(in, "w-1", func(h *observed.Host) {
				h.Firewalls = []observed.Firewall{{Name: "ufw",
					Off: true}}
			})
			changeHost(in, "w-2", func(h *observed.Host) {
				h.Firewalls = []observed.Firewall{{Name: "firewalld", Ours: true}}
				h.Digests = map[string]string{"firewall": "1"}
			})
			in.Config[in.Want.Workers[1].ID] = map[string]string{"firewall": "2"}
			return in
		},
		"firewall-lost-its-rules": func() decide.Input {
			in := healthyCluster(1, 2)
			changeHost(in, "w-1", func(h *observed.Host) { h.Firewalls = []observed.Firewall{{Name: "ufw"}} })
			changeHost(in, "w-2", func(h *observed.Host) {
				h.Firewalls = []observed.Firewall{{Name: "ufw",
					Ours: true}}
			})
			return in
		},
		"install-not-carried-out": func() decide.Input {
			in := bareCluster(3, 1)
			in.Want.Network.CNI.Name, in.Addons = "weaveNet", nil
			in.Want.NotCarriedOut = []string{"clusterNetwork.cni.weaveNet"}
			return in
		},
		"install-release-network": func() decide.Input { return withReleaseNetwork(bareCluster(1, 1)) },
		"upgrade-release-network-missing": func() decide.Input {
			in := withReleaseNetwork(healthyCluster(1, 0))
			in.Want.KubernetesVersion, in.Is.API.HelmReleases = "1.36.4", nil
			return in
		},
		"kube-proxy-replaced": func() decide.Input {
			in := withReleaseNetwork(healthyCluster(1, 1))
			in.Want.Network.KubeProxy.Skip, in.Want.Network.CNI.Features.ReplacesKubeProxy = true, true
			in.HelmReleases[0].Values = "replacement"
			in.Is.API.Pods = append(in.Is.API.Pods, observed.Pod{App: "kube-proxy", Node: "w-1", Ready: observed.Yes})
			return in
		},
		"install-resumed": halfInstalled,
		"other-binaries": func() decide.Input {
			in := healthyCluster(1, 2)
			for _, name := range []string{"w-1", "w-2"} {
				changeHost(in, name, func(h *observed.Host) {
					h.Binaries = map[string]string{"kubelet": "1.36.1", "containerd": "1.7.0", "tool": "1.0.0"}
				})
			}
			return in
		},
		"restore-files": func() decide.Input {
			in := healthyCluster(3, 2)
			for name, files := range map[string][]string{
				"cp-1": {"/etc/containerd/config.toml", "/var/lib/kubelet/config.yaml"},
				"cp-3": {"/etc/kubernetes/manifests/kube-scheduler.yaml", "/etc/systemd/system/kubelet.service"},
				"w-1":  {"/etc/containerd/certs.d/docker.io/hosts.toml"},
				"w-2":  {"/etc/sysctl.d/99-zz-kubeone.conf", "/var/lib/kubelet/config.yaml"},
			} {
				changeHost(in, name, func(h *observed.Host) { h.Edited, h.Restorable = files, files })
			}
			changeHost(in, "w-2", func(h *observed.Host) { h.Restorable = h.Edited[1:] }) // one has no copy
			return in
		},
		"close-files": func() decide.Input {
			in := healthyCluster(3, 1)
			changeHost(in, "cp-1", func(h *observed.Host) {
				h.Exposed = []observed.FileAccess{{Path: "/etc/kubernetes/admin.conf", Mode: "644"}}
			})
			changeHost(in, "w-1", func(h *observed.Host) {
				h.Exposed = []observed.FileAccess{{Path: "/var/lib/kubelet/pki/kubelet.key", Mode: "600", User: 1000}}
			})
			return in
		},
		"upgrade-half-upgraded": func() decide.Input {
			in := healthyCluster(1, 0)
			changeHost(in, "cp-1", func(h *observed.Host) {
				h.ControllerManagerVersion, h.SchedulerVersion = version, "1.36.1"
			})
			return in
		},
		"upgrade-discards-edits": func() decide.Input {
			in := healthyCluster(1, 0)
			in.Want.KubernetesVersion, in.DiscardEdits = "1.36.4", true
			changeHost(in, "cp-1", func(h *observed.Host) {
				h.Edited = []string{"/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/kubelet/config.yaml"}
				h.PodEdits = map[string][]string{h.Edited[0]: {"--audit-log-path", "mountPath: /etc/audit"}}
			})
			return in
		},
		"network-missing": func() decide.Input { // as where the scripts were run by hand
			in := healthyCluster(3, 1)
			in.Is.API.Addons, in.Is.API.Record = nil, nil
			for i := range in.Is.API.Nodes {
				in.Is.API.Nodes[i].Ready = observed.No
			}
			return in
		},
		"restore-files-stopped": func() decide.Input {
			in := healthyCluster(3, 1)
			replaceHost(in, "w-1", withEditedFiles(stoppedHost))
			replaceHost(in, "cp-2", withEditedFiles(stoppedHost))
			return in
		},
		"machines-install":  func() decide.Input { return withMachines(bareCluster(3, 1)) },
		"machines-deployed": func() decide.Input { return withMachines(healthyCluster(3, 1)) },
		"machines-join": func() decide.Input {
			return clusterWithControllers(withMachines(healthyCluster(3, 0,
				"cp-3")))
		},
		"machines-not-in-the-manifest": func() decide.Input {
			in := clusterWithControllers(withMachines(healthyCluster(3, 0, "cp-3")))
			in.Want.Controllers, in.Want.MachineDeployments = nil, nil
			delete(in.Addons, desired.ControllersAddon)
			return in
		},
		"machines-unreadable": func() decide.Input {
			in := clusterWithControllers(withMachines(healthyCluster(3, 1)))
			in.Is.API.Pool = &observed.Pool{Problem: "the server is too busy"}
			return in
		},
		"machines-unchanged": func() decide.Input { return clusterWithControllers(withMachines(healthyCluster(3, 1))) },
		"machines-new-program": func() decide.Input {
			in := clusterWithControllers(withMachines(healthyCluster(3, 1)))
			in.Want.Controllers.Image.Digest, in.Addons[desired.ControllersAddon] = "sha256:i4", "controllers-2"
			return in
		},
		"machines-upgrade": func() decide.Input {
			in := clusterWithControllers(withMachines(healthyCluster(1, 0)))
			in.Want.KubernetesVersion, in.UpgradeMachines = "1.36.4", true
			in.Is.API.Pool.Deployments[0].Kubelet = version
			in.Is.API.Pool.Machines = []observed.Machine{
				{Namespace: "kube-system", Name: "pool-1", Node: "m-1", Kubelet: version},
			}
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.4"}
			decidetest.Runs(in.Is.API.Pods, "kube-proxy", "r/kube-proxy:v1.36.3")
			return in
		},
		"machines-no-more": func() decide.Input {
			in := clusterWithControllers(withMachines(healthyCluster(3, 1)))
			in.Want.Controllers, in.Want.MachineDeployments, in.Want.NoControllers = nil, nil, true
			delete(in.Addons, desired.ControllersAddon)
			return in
		},
		"join-worker":        func() decide.Input { return healthyCluster(3, 2, "w-2") },
		"join-control-plane": func() decide.Input { return healthyCluster(3, 0, "cp-3") },
		"join-resumed":       halfJoined,
		"join-half-there": func() decide.Input {
			in := healthyCluster(1, 1, "w-1")
			changeHost(in, "w-1", func(h *observed.Host) {
				h.Binaries = map[string]string{desired.BinaryKubelet: version, desired.BinaryContainerd: "1.7.0"}
			})
			return in
		},
		"repair-and-join": func() decide.Input {
			in := healthyCluster(3, 2, "w-2")
			replaceHost(in, "cp-2", stoppedHost)
			replaceHost(in, "w-1", stoppedHost)
			return in
		},
		"instruct-also": func() decide.Input {
			in := healthyCluster(3, 3, "w-3")
			replaceHost(in, "cp-3", silentHost)
			replaceHost(in, "w-1", stoppedHost)
			etcdOf(in, "cp-3", func(m *observed.Member) { m.Healthy = observed.No })
			nodeOf(in, "cp-3", func(n *observed.Node) { n.Ready = observed.Unknown })
			in.Addons["metrics-server"] = "addon-3"
			return in
		},
		"objects-by-hand": func() decide.Input {
			in := healthyCluster(3, 1)
			in.Want.NotCarriedOut = []string{"features.metricsServer"}
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.3", "kube-dns": "r/coredns:v2"}
			for app, image := range in.System {
				decidetest.Runs(in.Is.API.Pods, app, image)
			}
			in.Is.API.ServingRequests = []observed.ServingRequest{
				{Node: "w-1", Names: []string{"w-1", "10.0.1.1"}}, {Node: "cp-1", Names: []string{"10.0.0.2"}},
			}
			in.Is.API.Compared = map[string]observed.Comparison{
				"flannel": {Differences: []observed.Difference{
					{Object: "DaemonSet kube-flannel/kube-flannel-ds", Missing: true},
					{Object: "ConfigMap kube-flannel/kube-flannel-cfg", Fields: []string{"data.net-conf.json"}},
					{Object: "ClusterRole flannel", Missing: true},
					{Object: "ClusterRoleBinding flannel", Missing: true},
				}},
				"kube-proxy": {
					Differences: []observed.Difference{{Object: "Role kube-system/kube-proxy", Missing: true}},
					Settings: []observed.Difference{
						{Object: "ConfigMap kube-system/kube-proxy", Fields: []string{"mode"}},
					},
				},
				"kube-dns": {Settings: []observed.Difference{
					{Object: "Deployment kube-system/coredns", Fields: []string{"spec.replicas"}},
				}},
				"metrics-server": {Problem: "a webhook refuses"},
			}
			return in
		},
		"dead-member": func() decide.Input {
			in := healthyCluster(3, 0)
			replaceHost(in, "cp-3", bareHost)
			etcdOf(in, "cp-3", func(m *observed.Member) { m.Healthy = observed.No })
			return in
		},
		"replaced-control-plane-and-worker": func() decide.Input {
			in := healthyCluster(3, 1)
			replaceHost(in, "cp-3", bareHost)
			replaceHost(in, "w-1", bareHost)
			etcdOf(in, "cp-3", func(m *observed.Member) { m.Healthy = observed.No })
			for _, name := range []string{"cp-3", "w-1"} {
				nodeOf(in, name, func(n *observed.Node) { n.Ready = observed.Unknown })
			}
			return in
		},
		"member-out-of-the-manifest": func() decide.Input {
			in := healthyCluster(4, 0)
			etcdOf(in, "cp-4", func(m *observed.Member) { m.Healthy = observed.No })
			nodeOf(in, "cp-4", func(n *observed.Node) { n.Ready = observed.Unknown })
			in.Want.ControlPlane = in.Want.ControlPlane[:3]
			delete(in.Is.Hosts, "192.0.0.4")
			return in
		},
		"etcd-data-lost": func() decide.Input {
			in := healthyCluster(3, 0)
			replaceHost(in, "cp-2", hostWithoutData)
			etcdOf(in, "cp-2", func(m *observed.Member) { m.Healthy = observed.No })
			return in
		},
		"regenerate": func() decide.Input {
			in := healthyCluster(3, 1)
			replaceHost(in, "cp-2", incompleteHost)
			replaceHost(in, "w-1", incompleteHost)
			return in
		},
		"certificates-ending": func() decide.Input {
			in := healthyCluster(2, 1)
			for _, name := range []string{"cp-1", "cp-2", "w-1"} {
				setCertificates(in, name, 80)
			}
			return in
		},
		"certificates-expired-everywhere": func() decide.Input {
			in := healthyCluster(3, 0)
			for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
				changeHost(in, name, func(h *observed.Host) {
					h.Certificates = []observed.Certificate{
						{Name: "apiserver", Expired: true},
						{Name: "etcd/peer", Expired: true},
					}
					h.APIServer, h.EtcdHealth, h.ControllerManager, h.Scheduler = observed.No, observed.No, observed.No,
						observed.No
				})
			}
			in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
			return in
		},
		"repair-without-api": func() decide.Input {
			in := healthyCluster(1, 1)
			replaceHost(in, "cp-1", func(h desired.Host) observed.Host {
				is := stoppedHost(h)
				is.APIServer, is.EtcdHealth, is.ControllerManager, is.Scheduler = observed.No, observed.No, observed.No,
					observed.No
				return is
			})
			in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
			return in
		},
		"repair-before-dead-member": func() decide.Input {
			in := healthyCluster(3, 1)
			replaceHost(in, "cp-3", bareHost)
			replaceHost(in, "w-1", stoppedHost)
			etcdOf(in, "cp-3", func(m *observed.Member) { m.Healthy = observed.No })
			return in
		},
		"upgrade": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Want.KubernetesVersion = "1.36.4"
			changeHost(in, "w-1", func(h *observed.Host) { h.Kubelet.Version = "1.36.2" })
			return in
		},
		"upgrade-without-network": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Want.KubernetesVersion, in.Is.API.Addons = "1.36.4", nil
			return in
		},
		"upgrade-and-system-addons": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Want.KubernetesVersion = "1.36.4"
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.4"}
			in.Is.API.Compared = map[string]observed.Comparison{"kube-proxy": {Settings: []observed.Difference{
				{Object: "ConfigMap kube-system/kube-proxy", Fields: []string{"mode"}},
			}}}
			decidetest.Runs(in.Is.API.Pods, "kube-proxy", "r/kube-proxy:v1.36.3")
			return in
		},
		"upgrade-beside-an-older-worker": func() decide.Input {
			in := healthyCluster(1, 2)
			in.Want.KubernetesVersion = "1.36.4"
			in.Want.Workers[1].Versions.Kubernetes = version
			in.Want.Artifacts[desired.ArtifactsKey("amd64", in.Want.Workers[1].Versions)] = in.Want.Artifacts["amd64"]
			in.System = map[string]string{"kube-proxy": "r/kube-proxy:v1.36.4"}
			decidetest.Runs(in.Is.API.Pods, "kube-proxy", "r/kube-proxy:v1.36.3")
			return in
		},
		"upgrade-waves": func() decide.Input {
			in := healthyCluster(3, 5)
			in.Want.KubernetesVersion = "1.37.0"
			in.Want.Upgrade = desired.Upgrade{Canary: true, MaxUnavailable: desired.Share{Percent: 40}}
			in.Want.Upgrade.Drain = desired.Drain{Timeout: time.Minute, OnTimeout: desired.DrainSkip}
			return in
		},
		"upgrade-goes-on": func() decide.Input {
			in := healthyCluster(2, 1)
			in.Want.KubernetesVersion = "1.36.4"
			changeHost(in, "cp-1", func(h *observed.Host) {
				h.Kubelet.Version, h.APIServerVersion = "1.36.4",
					"1.36.4"
			})
			nodeOf(in, "cp-1", func(n *observed.Node) {
				n.KubeletVersion, n.Unschedulable, n.Annotations = "1.36.4", true,
					map[string]string{observed.CordonAnnotation: "run-1"}
			})
			return in
		},
		"upgrade-interrupted": func() decide.Input {
			in := healthyCluster(1, 1)
			changeHost(in, "w-1", func(h *observed.Host) {
				h.Upgrading, h.Kubelet.Active, h.Healthz = in.Want.KubernetesVersion, false, observed.No
			})
			nodeOf(in, "w-1", func(n *observed.Node) {
				n.KubeletVersion, n.Ready, n.Unschedulable, n.Annotations = "1.36.2", observed.No, true,
					map[string]string{observed.CordonAnnotation: "run-1"}
			})
			return in
		},
		"worker-down": func() decide.Input {
			in := healthyCluster(1, 3)
			in.Want.Workers[1].Versions = desired.Versions{Kubernetes: "1.35.4", Containerd: "2.3.7"}
			in.Want.Workers[2].Versions = desired.Versions{Containerd: "2.3.7"}
			for _, name := range []string{"w-2", "w-3"} {
				changeHost(in, name, func(h *observed.Host) { h.Containerd.Version = "2.4.2" })
			}
			return in
		},
		"reconfigure": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Config["192.0.1.1"] = map[string]string{"kubelet": "config-2"}
			return in
		},
		"host-addons": func() decide.Input {
			in := healthyCluster(1, 1)
			const defrag, upgrades = desired.EtcdDefragAddon, desired.UnattendedUpgradesAddon
			in.Want.HostAddons = []desired.HostAddon{desired.DefaultHostAddon(defrag)}
			in.Config["192.0.0.1"] = map[string]string{"kubelet": "config-1", defrag: "a"}
			changeHost(in, "cp-1", func(h *observed.Host) {
				h.Digests = map[string]string{"kubelet": "config-1", upgrades: "b"}
			})
			return in
		},
		"host-addon-stopped": func() decide.Input {
			in := healthyCluster(1, 1)
			const upgrades = desired.UnattendedUpgradesAddon
			in.Want.HostAddons = []desired.HostAddon{desired.DefaultHostAddon(upgrades)}
			for id := range in.Config {
				in.Config[id] = map[string]string{"kubelet": "config-1", upgrades: "b"}
			}
			for _, name := range []string{"cp-1", "w-1"} {
				changeHost(in, name, func(h *observed.Host) { h.Digests = map[string]string{"kubelet": "config-1"} })
			}
			changeHost(in, "w-1", func(h *observed.Host) {
				h.Digests[upgrades], h.StoppedTimers = "b", []string{upgrades}
			})
			return in
		},
		"dns-image": func() decide.Input { return dnsElsewhere(2, 1) },
		"dns-image-and-settings": func() decide.Input {
			in := dnsElsewhere(1, 1)
			in.Config["192.0.1.1"]["kubelet"] = "config-2"
			return in
		},
		"repair-before-reconfigure": func() decide.Input {
			in := healthyCluster(1, 1)
			replaceHost(in, "w-1", stoppedHost)
			in.Config["192.0.0.1"] = map[string]string{"kubelet": "config-2"}
			return in
		},
		"repair-before-error": func() decide.Input {
			in := healthyCluster(1, 1)
			replaceHost(in, "w-1", stoppedHost)
			in.Want.KubernetesVersion = "1.36.1"
			return in
		},
		"disaster": func() decide.Input {
			in := healthyCluster(3, 0)
			for _, name := range []string{"cp-2", "cp-3"} {
				replaceHost(in, name, silentHost)
				etcdOf(in, name, func(m *observed.Member) { m.Healthy = observed.No })
			}
			in.Is.API.Reached = observed.No
			return in
		},
		"resources": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Is.API.Addons = map[string]string{"flannel": "addon-0"}
			in.Want.Digest = "manifest-2"
			in.Want.Workers[0].Labels = map[string]string{"zone": "a"}
			return in
		},
		"nothing": func() decide.Input {
			in := healthyCluster(3, 1)
			in.Want.NotCarriedOut = []string{"features.foo"}
			return in
		},
		"error": func() decide.Input {
			in := bareCluster(1, 0)
			replaceHost(in, "cp-1", silentHost)
			return in
		},
		"limit": func() decide.Input {
			in := healthyCluster(1, 3, "w-2", "w-3")
			in.Limit = map[string]bool{"192.0.1.2": true}
			return in
		},
	}
}

// dnsElsewhere returns a cluster whose manifest begins to say where the image of cluster DNS is.
func dnsElsewhere(controlPlanes, workers int) decide.Input {
	in := healthyCluster(controlPlanes, workers)
	in.Want.Digest = "manifest-2"
	for _, h := range in.Want.Hosts() {
		in.Config[h.ID] = map[string]string{"kubelet": "config-1", desired.DNSImageDigest: "elsewhere"}
	}
	in.System = map[string]string{"kube-dns": "r.example.com/dns/coredns:v1"}
	decidetest.Runs(in.Is.API.Pods, "kube-dns", "r.example.com/coredns:v1")
	in.Is.API.Compared = map[string]observed.Comparison{"kube-dns": {Differences: []observed.Difference{
		{Object: "Deployment kube-system/coredns", Fields: []string{"spec.template.spec.containers.image"}},
	}}}
	a := in.Want.Artifacts["amd64"]
	a.Images = append(a.Images, desired.Image{
		Name: "r.example.com/dns/coredns:v1", Source: "r.example.com/dns/coredns:v1", Digest: "sha256:i3",
		Blobs: []desired.Blob{{Digest: "sha256:c3"}},
	})
	in.Want.Artifacts = map[string]desired.Artifacts{"amd64": a}
	return in
}

// halfInstalled returns an installation that ended between the leader's init and the second host's etcd member.
func halfInstalled() decide.Input {
	in := bareCluster(3, 0)
	replaceHost(in, "cp-1", begunHost)
	changeHost(in, "cp-1", func(h *observed.Host) {
		h.AdminConf, h.PKI, h.EtcdData = observed.Yes, observed.Yes, observed.Yes
		h.Kubelet.Version, h.APIServerVersion = "1.36.2", "1.36.2"
	})
	return in
}

// halfJoined returns a third control-plane host that had got as far as etcd, whose member has not started and has no
// name.
func halfJoined() decide.Input {
	in := healthyCluster(3, 0, "cp-3")
	replaceHost(in, "cp-3", begunHost)
	changeHost(in, "cp-3", func(h *observed.Host) {
		h.PKI, h.AdminConf = observed.Yes, observed.Yes
		h.Kubelet.Version = "1.36.2"
	})
	m := testMember(in.Want.ControlPlane[2])
	m.Name, m.Learner, m.Healthy = "", true, observed.No
	in.Is.Etcd.Members = append(in.Is.Etcd.Members, m)
	return in
}

func TestPlansOfKnownWorlds(t *testing.T) {
	t.Parallel()
	all := goldenWorlds()
	maps.Copy(all, hookedWorlds())
	for name, world := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := Build(Input{Decide: world()})
			pinned(t, name, planText(p))
		})
	}
}
