package drive

import (
	"fmt"
	"time"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"kubeone/test/sim/world"
)

// The versions of the simulated releases.
const (
	Wanted  = "1.36.3"
	OldFix  = "1.36.1"
	OldStep = "1.35.4"
)

// The possible endpoints of a manifest.
const (
	endpoint      = "192.0.2.250"
	otherEndpoint = "192.0.2.251"
)

// newManifest returns the desired cluster.
func newManifest(controlPlanes, workers int) desired.Cluster {
	c := desired.Cluster{
		Name:              "alpha",
		KubernetesVersion: Wanted,
		Digest:            "manifest-1",
		Artifacts:         map[string]desired.Artifacts{"amd64": newRelease()},
	}
	c.Network.CNI = desired.CNI{Name: plugins.Names()[0], Supported: plugins.Names()}
	c.Endpoint = desired.Endpoint{Host: endpoint, Port: 6443}
	c.Upgrade = desired.Upgrade{
		MaxUnavailable: desired.Share{Count: 1 + workers/4}, Canary: true,
		Drain: desired.Drain{Timeout: 60 * time.Second, OnTimeout: desired.DrainStop},
	}
	for i := range controlPlanes {
		c.ControlPlane = append(c.ControlPlane, hostOf(desired.ControlPlane, "cp", 0, i+1))
	}
	for i := range workers {
		c.Workers = append(c.Workers, hostOf(desired.Worker, "worker", 1, i+1))
	}
	return c
}

// poolHosts returns hosts outside the manifest.
func poolHosts(n int) []desired.Host {
	var out []desired.Host
	for i := range n {
		out = append(out, hostOf(desired.Worker, "pool", 2, i+1))
	}
	return out
}

func hostOf(role desired.Role, prefix string, net, n int) desired.Host {
	public := fmt.Sprintf("192.0.%d.%d", net, n)
	return desired.Host{
		ID: public, PublicAddress: public, PrivateAddress: fmt.Sprintf("10.0.%d.%d", net, n),
		Hostname: fmt.Sprintf("%s-%d", prefix, n), Role: role,
	}
}

// newRelease returns a minimal release.
func newRelease() desired.Artifacts {
	return desired.Artifacts{
		KubernetesVersion: Wanted, Arch: "amd64", Pushed: true,
		Binaries: []desired.Binary{
			{Name: desired.BinaryKubelet, Version: Wanted, URL: "https://example.com/kubelet", SHA256: "b1"},
			{Name: desired.BinaryContainerd, Version: "2.2.1", URL: "https://example.com/containerd.tar.gz",
				SHA256: "b2", Archive: true},
		},
		Images: []desired.Image{{
			Name: world.Image(Wanted), Source: world.Image(Wanted), Digest: "sha256:i1",
			Blobs: []desired.Blob{{Digest: "sha256:c1"}},
		}},
	}
}
