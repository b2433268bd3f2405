// Package decidetest has hosts for the worlds in tests of decide and its subpackages.
package decidetest

import (
	"fmt"
	"time"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Values shared by the worlds of the tests.
const (
	Cluster = "alpha"
	CA      = "sha256:aaaa"
	OtherCA = "sha256:bbbb"
	Version = "1.36.3"
	Digest  = "manifest-1"
)

// Wanted returns a manifest with this number of hosts, cp-1… and w-1…, and the first network plugin of the table.
func Wanted(controlPlanes, workers int) desired.Cluster {
	c := desired.Cluster{Name: Cluster, KubernetesVersion: Version, Digest: Digest}
	c.Firewall = desired.FirewallManage
	c.Network.CNI = desired.CNI{Name: plugins.Names()[0], Supported: plugins.Names()}
	for i := range controlPlanes {
		c.ControlPlane = append(c.ControlPlane, Host(desired.ControlPlane, "cp", i+1))
	}
	for i := range workers {
		c.Workers = append(c.Workers, Host(desired.Worker, "w", i+1))
	}
	return c
}

// Host returns the nth host of the role, with a name that begins with the prefix.
func Host(role desired.Role, prefix string, n int) desired.Host {
	net := 0
	if role == desired.Worker {
		net = 1
	}
	return desired.Host{
		ID: fmt.Sprintf("192.0.%d.%d", net, n), PublicAddress: fmt.Sprintf("192.0.%d.%d", net, n),
		PrivateAddress: fmt.Sprintf("10.0.%d.%d", net, n), Hostname: fmt.Sprintf("%s-%d", prefix, n), Role: role,
	}
}

// Bare returns a reachable host that passes the checks and is empty.
func Bare(h desired.Host) observed.Host {
	return observed.Host{
		ID: h.ID, Reach: observed.Reached, Hostname: h.Hostname, MachineID: "machine-" + h.ID,
		OS: observed.OS{ID: "debian", VersionID: "13"}, Arch: "amd64", Kernel: "6.12.41+deb13-amd64",
		CPUs: 2, MemoryMiB: 4096, DiskMiB: 20480, ClockSkew: time.Second,
		KubeletConf: observed.No, AdminConf: observed.No, PKI: observed.No, EtcdData: observed.No,
	}
}

// Member returns a healthy member.
func Member(h desired.Host) observed.Host {
	is := Bare(h)
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running"}
	is.Containerd, is.Kubelet, is.Healthz = unit, unit, observed.Yes
	is.Kubelet.Version = Version
	is.Marker = &observed.Marker{Cluster: Cluster, Role: string(h.Role), Complete: true}
	is.KubeletConf, is.CAHash = observed.Yes, CA
	is.Digests = map[string]string{"kubelet": "config-1"}
	if h.Role == desired.ControlPlane {
		is.AdminConf, is.PKI, is.EtcdData = observed.Yes, observed.Yes, observed.Yes
		is.APIServer, is.EtcdHealth, is.ControllerManager, is.Scheduler = observed.Yes, observed.Yes, observed.Yes,
			observed.Yes
		is.APIServerVersion = Version
		is.Manifests = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	}
	return is
}

// Begun returns a host with an unfinished installation.
func Begun(h desired.Host) observed.Host {
	is := Bare(h)
	is.Marker = &observed.Marker{Cluster: Cluster, Role: string(h.Role)}
	is.KubeletConf, is.CAHash = observed.Yes, CA
	return is
}

// ReadyNode returns the Node of a healthy host.
func ReadyNode(h desired.Host) observed.Node {
	return observed.Node{
		Name: h.Hostname, Addresses: []string{h.PrivateAddress, h.PublicAddress}, Ready: observed.Yes,
		ControlPlane: h.Role == desired.ControlPlane, KubeletVersion: Version,
	}
}

// Voter returns the healthy etcd member of a host.
func Voter(h desired.Host) observed.Member {
	return observed.Member{
		ID:       "id-" + h.Hostname,
		Name:     h.Hostname,
		PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"},
		Healthy:  observed.Yes,
	}
}

// Silent returns a host that does not answer.
func Silent(h desired.Host) observed.Host {
	return observed.Host{ID: h.ID, Reach: observed.Unreachable, Class: "unreachable", Problem: "connection timed out"}
}

// Pods returns the pods that a cluster needs, ready on their Nodes: the network plugin, kube-proxy and, on the first
// Node, cluster DNS.
func Pods(want desired.Cluster, nodes []observed.Node) []observed.Pod {
	var out []observed.Pod
	for i, n := range nodes {
		apps := []string{want.Network.CNI.Name, "kube-proxy"}
		if i == 0 {
			apps = append(apps, "kube-dns")
		}
		for _, app := range apps {
			out = append(out, observed.Pod{Name: app + "-" + n.Name, Node: n.Name, App: app, Ready: observed.Yes})
		}
	}
	return out
}

// Runs sets the image of all pods of the app.
func Runs(pods []observed.Pod, app, image string) {
	for i := range pods {
		if pods[i].App == app {
			pods[i].Image = image
		}
	}
}
