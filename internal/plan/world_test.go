package plan

import (
	"fmt"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
)

// What the worlds of the tests have in common.
const (
	cluster = "alpha"
	ca      = "sha256:aaaa"
	version = "1.36.3"
)

// testArtifacts returns a small release; pushed says that a bundle is there.
func testArtifacts(pushed bool) map[string]desired.Artifacts {
	blob := func(n string) []desired.Blob {
		return []desired.Blob{{Digest: "sha256:" + n}, {Digest: "sha256:shared"}}
	}
	return map[string]desired.Artifacts{"amd64": {
		KubernetesVersion: version, Arch: "amd64", Pushed: pushed,
		Binaries: []desired.Binary{
			{Name: desired.BinaryKubelet, Version: version, URL: "https://example.com/kubelet", SHA256: "b1"},
			{Name: desired.BinaryContainerd, Version: "2.2.1", URL: "https://example.com/containerd.tar.gz",
				SHA256: "b2", Archive: true},
		},
		Images: []desired.Image{
			{Name: "example.com/kube-apiserver:v" + version, Source: "example.com/kube-apiserver:v" + version,
				Digest: "sha256:i1", Roles: []desired.Role{desired.ControlPlane}, Blobs: blob("c1")},
			{Name: "example.com/pause:3.10", Source: "example.com/pause:3.10", Digest: "sha256:i2", Blobs: blob("c2")},
		},
	}}
}

// testManifest returns a manifest with hosts cp-1… and w-1….
func testManifest(controlPlanes, workers int) desired.Cluster {
	c := desired.Cluster{Name: cluster, KubernetesVersion: version, Digest: "manifest-1",
		Artifacts: testArtifacts(true),
		Firewall:  desired.FirewallManage}
	c.Network.CNI = desired.CNI{Name: "flannel", Supported: []string{"flannel", "external"}}
	for i := range controlPlanes {
		c.ControlPlane = append(c.ControlPlane, wantedHost(desired.ControlPlane, "cp", 0, i+1))
	}
	for i := range workers {
		c.Workers = append(c.Workers, wantedHost(desired.Worker, "w", 1, i+1))
	}
	return c
}

func wantedHost(role desired.Role, prefix string, net, n int) desired.Host {
	id := fmt.Sprintf("192.0.%d.%d", net, n)
	return desired.Host{
		ID: id, PublicAddress: id, PrivateAddress: fmt.Sprintf("10.0.%d.%d", net, n),
		Hostname: fmt.Sprintf("%s-%d", prefix, n), Role: role,
	}
}

// bareHost returns a host that answered, is fit and has nothing on it.
func bareHost(h desired.Host) observed.Host {
	return observed.Host{
		ID: h.ID, Reach: observed.Reached, Hostname: h.Hostname, MachineID: "machine-" + h.ID,
		OS: observed.OS{ID: "debian", VersionID: "13"}, Arch: "amd64", Kernel: "6.12.41", CPUs: 2, MemoryMiB: 4096,
		DiskMiB:   20480,
		ClockSkew: time.Second, KubeletConf: observed.No, AdminConf: observed.No, PKI: observed.No,
		EtcdData: observed.No,
	}
}

// memberHost returns a host that joined and is well.
func memberHost(h desired.Host) observed.Host {
	is := bareHost(h)
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running"}
	is.Containerd, is.Kubelet, is.Healthz = unit, unit, observed.Yes
	is.Kubelet.Version = version
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role), Complete: true}
	is.KubeletConf, is.CAHash = observed.Yes, ca
	is.Digests = map[string]string{"kubelet": "config-1"}
	if h.Role == desired.ControlPlane {
		is.AdminConf, is.PKI, is.EtcdData = observed.Yes, observed.Yes, observed.Yes
		is.APIServer, is.EtcdHealth, is.ControllerManager, is.Scheduler = observed.Yes, observed.Yes, observed.Yes,
			observed.Yes
		is.APIServerVersion = version
		is.Manifests = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	}
	return is
}

// hostWithoutData reports that the data of its etcd is gone, and that it does not run.
func hostWithoutData(h desired.Host) observed.Host {
	is := memberHost(h)
	if h.Role == desired.ControlPlane {
		is.EtcdData, is.EtcdHealth, is.APIServer = observed.No, observed.No, observed.No
	}
	return is
}

// incompleteHost lacks its API server's manifest, or a worker its kubelet.conf.
func incompleteHost(h desired.Host) observed.Host {
	is := memberHost(h)
	if h.Role == desired.ControlPlane {
		is.Manifests, is.APIServer, is.APIServerVersion = []string{"etcd", "kube-controller-manager", "kube-scheduler"},
			observed.Unknown, ""
	} else {
		is.KubeletConf = observed.No
	}
	return is
}

// begunHost returns a host on which our installation has not finished.
func begunHost(h desired.Host) observed.Host {
	is := bareHost(h)
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role)}
	is.KubeletConf, is.CAHash = observed.Yes, ca
	is.Digests = map[string]string{"kubelet": "of-an-older-manifest"}
	return is
}

func stoppedHost(h desired.Host) observed.Host {
	is := memberHost(h)
	is.Kubelet.Active, is.Kubelet.State, is.Healthz = false, "inactive/dead", observed.No
	return is
}

func silentHost(h desired.Host) observed.Host {
	return observed.Host{ID: h.ID, Reach: observed.Unreachable, Class: "unreachable", Problem: "connection timed out"}
}

func testNode(h desired.Host) observed.Node {
	return observed.Node{
		Name: h.Hostname, Addresses: []string{h.PrivateAddress, h.PublicAddress}, Ready: observed.Yes,
		ControlPlane: h.Role == desired.ControlPlane, KubeletVersion: version,
		Labels: map[string]string{"kubernetes.io/os": "linux"},
	}
}

func testMember(h desired.Host) observed.Member {
	return observed.Member{
		ID:       "id-" + h.Hostname,
		Name:     h.Hostname,
		PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"},
		Healthy:  observed.Yes,
	}
}

// bareCluster returns the input of a manifest whose hosts are all bare.
func bareCluster(controlPlanes, workers int) decide.Input {
	in := decide.Input{
		Want:   testManifest(controlPlanes, workers),
		Config: map[string]map[string]string{},
		Addons: map[string]string{"flannel": "addon-1", "metrics-server": "addon-2"},
	}
	in.Is.Hosts = map[string]observed.Host{}
	for _, h := range in.Want.Hosts() {
		in.Is.Hosts[h.ID] = bareHost(h)
		in.Config[h.ID] = map[string]string{"kubelet": "config-1"}
	}
	return in
}

// healthyCluster returns the input of a cluster that matches its manifest, except for the hosts named, which are bare.
func healthyCluster(controlPlanes, workers int, without ...string) decide.Input {
	in := bareCluster(controlPlanes, workers)
	in.Is.API = observed.API{
		Reached: observed.Yes, Version: version,
		Addons: map[string]string{"flannel": "addon-1", "metrics-server": "addon-2"},
		Record: &observed.Record{Cluster: cluster, ManifestDigest: "manifest-1"}, Via: "192.0.0.1",
	}
	in.Is.Etcd.Reached = observed.Yes
	out := map[string]bool{}
	for _, name := range without {
		out[name] = true
	}
	for _, h := range in.Want.Hosts() {
		if out[h.Hostname] {
			continue
		}
		in.Is.Hosts[h.ID] = memberHost(h)
		in.Is.API.Nodes = append(in.Is.API.Nodes, testNode(h))
		if h.Role == desired.ControlPlane {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, testMember(h))
		}
	}
	in.Is.API.Pods = decidetest.Pods(in.Want, in.Is.API.Nodes)
	return in
}

// replaceHost makes the named host another.
func replaceHost(in decide.Input, name string, how func(desired.Host) observed.Host) {
	h, _ := in.Want.Host(name)
	in.Is.Hosts[h.ID] = how(h)
}

// changeHost changes what the named host said.
func changeHost(in decide.Input, name string, how func(*observed.Host)) {
	h, _ := in.Want.Host(name)
	is := in.Is.Hosts[h.ID]
	how(&is)
	in.Is.Hosts[h.ID] = is
}

// etcdOf lets how change the named host's member.
func etcdOf(in decide.Input, name string, how func(*observed.Member)) {
	for i := range in.Is.Etcd.Members {
		if in.Is.Etcd.Members[i].Name == name {
			how(&in.Is.Etcd.Members[i])
			return
		}
	}
}

// nodeOf lets how change the named Node.
func nodeOf(in decide.Input, name string, how func(*observed.Node)) {
	for i := range in.Is.API.Nodes {
		if in.Is.API.Nodes[i].Name == name {
			how(&in.Is.API.Nodes[i])
		}
	}
}
