package script

import (
	"kubeone/internal/componentconfig"
	"kubeone/internal/testutil/configtest"
	"time"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

func input(name string) Input {
	want := configtest.Cluster()
	h, _ := want.Host(name)
	return Input{
		Input: componentconfig.Input{
			Want: want, Host: h, NodeName: name, Arch: "amd64", Network: plugins.Host(want),
		},
		OS: "debian",
	}
}

func ptr[T any](v T) *T { return &v }

// everything is a control-plane host of a manifest that sets all there is to set.
func everything() Input {
	in := input("cp-1")
	w := &in.Want
	w.Endpoint.AlternativeNames = []string{"api.example.com"}
	w.Network.IPFamily, w.Network.NodeCIDRMaskSizeIPv6 = desired.DualStack, 64
	w.Network.PodSubnetIPv6, w.Network.ServiceSubnetIPv6 = "fd01::/48", "fd02::/120"
	in.Host.IPv6Addresses = []string{"2001:db8::1"}
	w.Backup = desired.Backup{Schedule: 6 * time.Hour, Keep: 10}
	w.HostAddons = []desired.HostAddon{
		desired.DefaultHostAddon(desired.EtcdDefragAddon), desired.DefaultHostAddon(desired.UnattendedUpgradesAddon),
	}
	w.Registry = desired.Registry{Overwrite: "mirror.example.com:5000/k8s", Insecure: true}
	w.Artifacts = map[string]desired.Artifacts{"amd64": configtest.Artifacts("mirror.example.com:5000/k8s")}
	w.Proxy = desired.Proxy{
		HTTP:    "http://proxy.example.com:3128",
		HTTPS:   "http://proxy.example.com:3128",
		NoProxy: "10.0.0.0/8,.svc",
		HasAuth: true,
	}
	credentials := configtest.Credentials()
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
	w.Extras = configtest.Extras()
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
