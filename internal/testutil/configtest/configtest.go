// Package configtest has a cluster for tests of host configuration.
package configtest

import (
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
)

// Version is the Kubernetes version of the cluster.
const Version = "1.36.3"

// Cluster returns a manifest with three control-plane hosts and a worker.
func Cluster() desired.Cluster {
	c := desired.Cluster{
		Name: "alpha", KubernetesVersion: Version, Digest: "manifest-1", Firewall: desired.FirewallManage,
		Endpoint: desired.Endpoint{Host: "lb.example.com", Port: 6443},
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/12", IPFamily: "IPv4", DNSDomain: "cluster.local",
			NodePortRange: "30000-32767", NodeCIDRMaskSize: 24,
			CNI:       desired.CNI{Name: "flannel", Ports: plugins.Ports("flannel")},
			KubeProxy: desired.KubeProxy{Mode: "iptables"},
		},
		Logging:   desired.Logging{MaxSize: "100Mi", MaxFiles: 5},
		Artifacts: map[string]desired.Artifacts{"amd64": Artifacts("registry.k8s.io")},
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

// Artifacts returns a release with images in a registry.
func Artifacts(registry string) desired.Artifacts {
	image := func(name string, roles ...desired.Role) desired.Image {
		return desired.Image{
			Name:   registry + "/" + name,
			Source: registry + "/" + name,
			Digest: "sha256:" + name,
			Roles:  roles,
		}
	}
	return desired.Artifacts{
		KubernetesVersion: Version, Arch: "amd64",
		Binaries: []desired.Binary{
			{Name: desired.BinaryKubelet, Version: Version, URL: "https://example.com/kubelet", SHA256: "aa"},
			{Name: desired.BinaryContainerd, Version: "2.2.1", URL: "https://example.com/containerd.tar.gz",
				SHA256: "bb", Archive: true},
		},
		Images: []desired.Image{
			image("kube-apiserver:v"+Version, desired.ControlPlane), image("etcd:3.6.9-0", desired.ControlPlane),
			image("pause:3.10.1"), image("coredns/coredns:v1.14.2"),
		},
	}
}

// Extras returns two things: a file with a flag and a directory, and an admission plugin with a secret configuration.
func Extras() []desired.Extra {
	policy := desired.NewComponentFile(desired.APIServer, "policy.yaml", "kind: Policy\n\n\n")
	plugin, _ := desired.NewComponentFile(desired.APIServer, "plugin.yaml", "token: geheim").Secretly()
	return []desired.Extra{
		{
			Name: "audit", Component: desired.APIServer, Files: []desired.ComponentFile{policy},
			Flags: map[string]string{"audit-policy-file": policy.Path}, Directories: []string{"/var/log/audit"},
		},
		{
			Name: "plugin", Component: desired.APIServer,
			Plugins: []desired.AdmissionPlugin{{Name: "Zed", Config: &plugin}, {Name: "Always"}},
		},
		{Name: "scheduler", Component: desired.Scheduler, Flags: map[string]string{"v": "4"}},
	}
}

// Password needs quoting everywhere.
const Password = `hunter2"'\$(x) and more`

// Credentials returns credentials of every kind.
func Credentials() desired.Credentials {
	return desired.Credentials{
		Registries: map[string]desired.RegistryAuth{
			"registry.example.com:5000": {Username: "puller", Password: Password},
			"[fd00::1]:5000":            {Auth: "dTpwYXNz"},
			"docker.io":                 {IdentityToken: "t0ken"},
		},
		HTTPProxy: "http://user:pa%27ss@proxy.example.com:3128",
	}
}
