package decide

import (
	"slices"

	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// lacksControllerFiles reports whether a control-plane host lacks what the controllers need there, where they are to
// run.
func (v *view) lacksControllerFiles(s *hostState) bool {
	want := v.in.Want.Controllers
	if want == nil || v.in.About != nil || !s.controlPlane() || !s.inLimit || !s.joined() ||
		s.is.Reach != observed.Reached || s.is.Arch != want.Arch {
		return false
	}
	if s.is.ControllerFiles.Image != want.Image.Name+" "+want.Image.Digest {
		return true
	}
	return slices.ContainsFunc(want.Bundles, func(b desired.BundleFile) bool {
		return s.is.ControllerFiles.Bundles[b.Name] != b.Size
	})
}

// unwantedAddons names the addons that are there and are to go.
func (v *view) unwantedAddons() []string {
	_, there := v.in.Is.API.Addons[desired.ControllersAddon]
	if v.in.About != nil || !v.in.Want.NoControllers || !there {
		return nil
	}
	return []string{desired.ControllersAddon}
}

// missingMachines are the wanted MachineDeployments that the cluster does not have. Once one is there, it is its users':
// what it says is compared with nothing.
func (v *view) missingMachines() []string {
	if v.in.About != nil {
		return nil
	}
	var out []string
	for _, want := range v.in.Want.MachineDeployments {
		if !slices.ContainsFunc(v.in.Is.API.Pool.Deployed(), func(is observed.MachineDeployment) bool {
			return is.Namespace == want.Namespace && is.Name == want.Name
		}) {
			out = append(out, want.Namespace+"/"+want.Name)
		}
	}
	return out
}

// oldMachines are the MachineDeployments whose kubelets are to follow the cluster's version. They do when every
// control-plane host of the manifest has it: no kubelet may be newer than an API server.
func (v *view) oldMachines() []string {
	if v.in.About != nil || !v.in.UpgradeMachines || len(having(v.controlPlane(), func(s *hostState) bool {
		return v.outdated(s)
	})) > 0 {
		return nil
	}
	var out []string
	for _, is := range v.in.Is.API.Pool.Deployed() {
		if is.Kubelet != v.in.Want.KubernetesVersion {
			out = append(out, is.Namespace+"/"+is.Name)
		}
	}
	slices.Sort(out)
	return out
}
