package plan

import (
	"maps"

	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// withMachines wants a MachineDeployment, and controllers in the cluster.
func withMachines(in decide.Input) decide.Input {
	in.Want.Controllers = &desired.Controllers{
		Arch: "amd64", Index: "{}",
		Image: desired.Image{
			Name: "kubeone.k8c.io/kubeone:1", Digest: "sha256:i3", Blobs: []desired.Blob{{Digest: "sha256:c3"}},
		},
		Bundles: []desired.BundleFile{{Name: "kubeone-1.36.3-amd64-abc.tar", Size: 7}},
	}
	in.Want.MachineDeployments = []desired.MachineDeployment{{Namespace: "kube-system", Name: "pool", Object: "{}"}}
	in.Addons = maps.Clone(in.Addons)
	in.Addons[desired.ControllersAddon] = "controllers-1"
	return in
}

// deployed is a cluster in which all that is there.
func deployed(in decide.Input) decide.Input {
	in.Is.API.Addons = maps.Clone(in.Is.API.Addons)
	in.Is.API.Addons[desired.ControllersAddon] = in.Addons[desired.ControllersAddon]
	in.Is.API.Pool = &observed.Pool{Deployments: []observed.MachineDeployment{
		{Namespace: "kube-system", Name: "pool", Kubelet: in.Want.KubernetesVersion},
	}}
	for id, h := range in.Is.Hosts {
		if h.Marker == nil || h.Marker.Role != string(desired.ControlPlane) {
			continue
		}
		h.ControllerFiles = observed.ControllerFiles{
			Image:   in.Want.Controllers.Image.Name + " " + in.Want.Controllers.Image.Digest,
			Bundles: map[string]int64{"kubeone-1.36.3-amd64-abc.tar": 7},
		}
		in.Is.Hosts[id] = h
	}
	return in
}
