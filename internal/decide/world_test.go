package decide

import (
	"fmt"
	"slices"
	"time"

	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// What the worlds of the tests have in common.
const (
	cluster = "alpha"
	ca      = "sha256:aaaa"
	otherCA = "sha256:bbbb"
	running = "1.36.3"
	digest  = "manifest-1"
)

// wanted is a manifest with so many hosts, cp-1… and w-1…, flannel as its network plugin.
func wanted(controlPlanes, workers int) desired.Cluster {
	c := desired.Cluster{Name: cluster, KubernetesVersion: running, Digest: digest}
	c.Network.CNI.Name = "flannel"
	for i := range controlPlanes {
		c.ControlPlane = append(c.ControlPlane, wantedHost(desired.ControlPlane, "cp", i+1))
	}
	for i := range workers {
		c.Workers = append(c.Workers, wantedHost(desired.Worker, "w", i+1))
	}
	return c
}

func wantedHost(role desired.Role, prefix string, n int) desired.Host {
	net := 0
	if role == desired.Worker {
		net = 1
	}
	return desired.Host{
		ID: fmt.Sprintf("192.0.%d.%d", net, n), PublicAddress: fmt.Sprintf("192.0.%d.%d", net, n),
		PrivateAddress: fmt.Sprintf("10.0.%d.%d", net, n), Hostname: fmt.Sprintf("%s-%d", prefix, n), Role: role,
	}
}

// bare is a host that answered, is fit and has nothing on it.
func bare(h desired.Host) observed.Host {
	return observed.Host{
		ID: h.ID, Reach: observed.Reached, Hostname: h.Hostname, MachineID: "machine-" + h.ID,
		OS: observed.OS{ID: "debian", VersionID: "13"}, Arch: "amd64", Kernel: "6.12.41+deb13-amd64",
		CPUs: 2, MemoryMiB: 4096, DiskMiB: 20480, ClockSkew: time.Second,
		KubeletConf: observed.No, AdminConf: observed.No, PKI: observed.No, EtcdData: observed.No,
	}
}

// member is a host that joined and is well.
func member(h desired.Host) observed.Host {
	is := bare(h)
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running"}
	is.Containerd, is.Kubelet, is.Healthz = unit, unit, observed.Yes
	is.Kubelet.Version = running
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role), Complete: true}
	is.KubeletConf, is.CAHash = observed.Yes, ca
	is.Digests = map[string]string{"kubelet": "config-1"}
	if h.Role == desired.ControlPlane {
		is.AdminConf, is.PKI, is.EtcdData = observed.Yes, observed.Yes, observed.Yes
		is.APIServer, is.EtcdHealth, is.ControllerManager, is.Scheduler = observed.Yes, observed.Yes, observed.Yes, observed.Yes
		is.APIServerVersion = running
		is.Manifests = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	}
	return is
}

// begun is a host on which our installation has not finished.
func begun(h desired.Host) observed.Host {
	is := bare(h)
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role)}
	is.KubeletConf, is.CAHash = observed.Yes, ca
	return is
}

func readyNode(h desired.Host) observed.Node {
	return observed.Node{
		Name: h.Hostname, Addresses: []string{h.PrivateAddress, h.PublicAddress}, Ready: observed.Yes,
		ControlPlane: h.Role == desired.ControlPlane, KubeletVersion: running,
	}
}

func voter(h desired.Host) observed.Member {
	return observed.Member{ID: "id-" + h.Hostname, Name: h.Hostname, PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"}, Healthy: observed.Yes}
}

// healthy is the input of a cluster that matches its manifest.
func healthy(controlPlanes, workers int) Input {
	in := Input{
		Want:   wanted(controlPlanes, workers),
		Config: map[string]map[string]string{},
		Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"},
	}
	in.Is.Hosts = map[string]observed.Host{}
	in.Is.API = observed.API{
		Reached: observed.Yes, Version: running, Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"},
		Record: &observed.Record{Cluster: cluster, ManifestDigest: digest},
	}
	in.Is.Etcd.Reached = observed.Yes
	for _, h := range in.Want.Hosts() {
		in.Is.Hosts[h.ID] = member(h)
		in.Config[h.ID] = map[string]string{"kubelet": "config-1"}
		in.Is.API.Nodes = append(in.Is.API.Nodes, readyNode(h))
		if h.Role == desired.ControlPlane {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, voter(h))
		}
	}
	if controlPlanes > 0 {
		in.Is.API.Via = in.Want.ControlPlane[0].ID
	}
	return in
}

// change changes what one host said.
func (in *Input) change(id string, how func(*observed.Host)) {
	h := in.Is.Hosts[id]
	how(&h)
	in.Is.Hosts[id] = h
}

// node returns the Node of that name, to be changed.
func (in *Input) node(name string) *observed.Node {
	for i := range in.Is.API.Nodes {
		if in.Is.API.Nodes[i].Name == name {
			return &in.Is.API.Nodes[i]
		}
	}
	return nil
}

// empties makes hosts bare, without Node and member.
func (in *Input) empties(ids ...string) {
	for _, h := range in.Want.Hosts() {
		if !slices.Contains(ids, h.ID) {
			continue
		}
		in.Is.Hosts[h.ID] = bare(h)
		in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == h.Hostname })
		in.Is.Etcd.Members = slices.DeleteFunc(in.Is.Etcd.Members, func(m observed.Member) bool { return m.Name == h.Hostname })
	}
}

// nobody is the world before an installation.
func (in *Input) nobody() {
	for _, h := range in.Want.Hosts() {
		in.empties(h.ID)
	}
	in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
}

// lose makes hosts unreachable and their members dead.
func (in *Input) lose(ids ...string) {
	for _, h := range in.Want.Hosts() {
		if slices.Contains(ids, h.ID) {
			in.Is.Hosts[h.ID] = silentHost(h)
			in.kill(h.Hostname)
		}
	}
}

func (in *Input) kill(name string) {
	for i := range in.Is.Etcd.Members {
		if in.Is.Etcd.Members[i].Name == name {
			in.Is.Etcd.Members[i].Healthy = observed.No
		}
	}
}
