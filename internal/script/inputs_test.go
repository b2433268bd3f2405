package script

import (
	"time"

	"kubeone/internal/desired"
	"kubeone/internal/network/plugins"
	"kubeone/internal/step"
)

const version = "1.36.3"

// wanted is a manifest with three control-plane hosts and a worker.
func wanted() desired.Cluster {
	c := desired.Cluster{
		Name: "alpha", KubernetesVersion: version, Digest: "manifest-1", Firewall: desired.FirewallManage,
		Endpoint: desired.Endpoint{Host: "lb.example.com", Port: 6443},
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/12", IPFamily: "IPv4", DNSDomain: "cluster.local",
			NodePortRange: "30000-32767", NodeCIDRMaskSize: 24,
			CNI:       desired.CNI{Name: "flannel", Ports: plugins.Ports("flannel")},
			KubeProxy: desired.KubeProxy{Mode: "iptables"},
		},
		Logging:   desired.Logging{MaxSize: "100Mi", MaxFiles: 5},
		Artifacts: map[string]desired.Artifacts{"amd64": artifacts("registry.k8s.io")},
	}
	taint := []desired.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}
	for _, n := range []string{"1", "2", "3"} {
		c.ControlPlane = append(c.ControlPlane, desired.Host{
			ID: "192.0.2." + n, Role: desired.ControlPlane, PublicAddress: "192.0.2." + n,
			PrivateAddress: "10.0.0." + n, Hostname: "cp-" + n, Taints: taint,
		})
	}
	c.Workers = []desired.Host{
		{ID: "192.0.2.11", Role: desired.Worker, PublicAddress: "192.0.2.11", PrivateAddress: "10.0.0.11",
			Hostname: "w-1"},
	}
	return c
}

func artifacts(registry string) desired.Artifacts {
	image := func(name string, roles ...desired.Role) desired.Image {
		return desired.Image{
			Name:   registry + "/" + name,
			Source: registry + "/" + name,
			Digest: "sha256:" + name,
			Roles:  roles,
		}
	}
	return desired.Artifacts{
		KubernetesVersion: version, Arch: "amd64",
		Binaries: []desired.Binary{
			{Name: desired.BinaryKubelet, Version: version, URL: "https://example.com/kubelet", SHA256: "aa"},
			{Name: desired.BinaryContainerd, Version: "2.2.1", URL: "https://example.com/containerd.tar.gz",
				SHA256: "bb", Archive: true},
		},
		Images: []desired.Image{
			image("kube-apiserver:v"+version, desired.ControlPlane), image("etcd:3.6.9-0", desired.ControlPlane),
			image("pause:3.10.1"), image("coredns/coredns:v1.14.2"),
		},
	}
}

func input(name string) Input {
	want := wanted()
	h, _ := want.Host(name)
	return Input{Want: want, Host: h, NodeName: name, Arch: "amd64", OS: "debian", Network: plugins.Host(want)}
}

func ptr[T any](v T) *T { return &v }

// everything is a control-plane host of a manifest that sets all there is to set.
func everything() Input {
	in := input("cp-1")
	w := &in.Want
	w.Endpoint.AlternativeNames = []string{"api.example.com"}
	w.Backup = desired.Backup{Schedule: 6 * time.Hour, Keep: 10}
	w.Registry = desired.Registry{Overwrite: "mirror.example.com:5000/k8s", Insecure: true}
	w.Artifacts = map[string]desired.Artifacts{"amd64": artifacts("mirror.example.com:5000/k8s")}
	w.Proxy = desired.Proxy{
		HTTP:    "http://proxy.example.com:3128",
		HTTPS:   "http://proxy.example.com:3128",
		NoProxy: "10.0.0.0/8,.svc",
		HasAuth: true,
	}
	credentials := someCredentials()
	in.Credentials = &credentials
	w.Containerd = desired.Containerd{
		DeviceOwnershipFromSecurityContext: true,
		Registries: map[string]desired.Mirrored{
			"*": {Mirrors: []string{"https://all.example.com"}},
			"docker.io": {Mirrors: []string{"docker.example.com", "http://plain.example.com"}, OverridePath: true,
				InsecureSkipVerify: true, HasAuth: true},
		},
	}
	w.Kubelet = desired.Kubelet{
		SystemReserved: map[string]string{"cpu": "200m"}, KubeReserved: map[string]string{"memory": "1Gi"},
		EvictionHard: map[string]string{"memory.available": "3%"},
		MaxPods:      ptr[int32](200), PodPidsLimit: ptr[int64](4096), ImageGCHighThresholdPercent: ptr[int32](80),
		ImageGCLowThresholdPercent: ptr[int32](70),
		ImageMinimumGCAge:          "2m", ImageMaximumGCAge: "720h",
	}
	in.Host.Kubelet = desired.Kubelet{MaxPods: ptr[int32](50)}
	in.Host.Taints = append(in.Host.Taints,
		desired.Taint{Key: "it's", Value: "a 'quoted' $(value)", Effect: "NoExecute"})
	w.TLSCipherSuites = desired.TLSCipherSuites{
		APIServer: []string{"A", "B"},
		Etcd:      []string{"C"},
		Kubelet:   []string{"D"},
	}
	w.Components = desired.Components{
		APIServer: desired.Component{
			Flags:        map[string]string{"v": "4"},
			FeatureGates: map[string]bool{"X": true, "A": false},
		},
		Etcd: desired.EtcdComponent{
			QuotaBackendBytes:       1 << 30,
			AutoCompactionRetention: "8h",
			AutoCompactionMode:      "periodic",
		},
	}
	w.Certificates = desired.Certificates{ValidityPeriod: "4380h", CAValidityPeriod: "43800h"}
	w.Extras = extras()
	w.Preflight.IgnoreErrors = []string{"Swap", "NumCPU"}
	w.Network.KubeProxy = desired.KubeProxy{
		Mode: "ipvs", Conntrack: &desired.Conntrack{MaxPerCore: 0, Min: 1000},
		IPVS: &desired.IPVS{
			Scheduler:    "rr",
			StrictARP:    true,
			ExcludeCIDRs: []string{"192.0.2.0/24"},
			TCPTimeout:   "10s",
		},
	}
	return in
}

// variants are the hosts whose scripts are pinned, by the name of the golden file.
func variants() map[string]Input {
	pushed := input("cp-2")
	a := pushed.Want.Artifacts["amd64"]
	a.Pushed = true
	pushed.Want.Artifacts = map[string]desired.Artifacts{"amd64": a}
	pushed.ImageIndex, pushed.ImageBlobs = `{"schemaVersion":2}`, []string{"blobs/sha256/aa", "blobs/sha256/bb"}
	worker := input("w-1")
	worker.Steps = []step.Intent{step.With(step.RestartUnitsParams{Units: []string{"containerd", "kubelet"}})}
	bare := input("w-1")
	bare.Want.Artifacts = nil
	leader := input("cp-1")
	leader.Steps = only(step.Prepare, step.Images, step.Init)
	pushed.Steps = only(step.Prepare, step.Images, step.CopyPKI, step.JoinPrepare, step.JoinEtcd, step.JoinFinish)
	noProxy := input("cp-3")
	noProxy.Want.Network.KubeProxy.Skip, noProxy.Want.Network.CNI.Name = true, "external"
	noProxy.Network = plugins.Host(noProxy.Want)
	return map[string]Input{
		"leader":          leader,
		"follower-pushed": pushed,
		"worker":          worker,
		"everything":      everything(),
		"reset-only":      bare,
		"external":        noProxy,
		"baseline":        hardened("cp-1", desired.HardeningBaseline),
		"baseline-worker": hardened("w-1", desired.HardeningBaseline),
		"baseline-none":   hardened("w-1", desired.HardeningNone),
	}
}

// hardened is a host of a cluster that is hardened so much.
func hardened(name, value string) Input {
	in := input(name)
	in.Want = in.Want.Harden(value)
	return in
}

// only are steps that have no parameters, for a control-plane host.
func only(kinds ...step.Kind) []step.Intent {
	var out []step.Intent
	for _, k := range kinds {
		out = append(out, step.Intent{Kind: k, Role: desired.ControlPlane})
	}
	return out
}
