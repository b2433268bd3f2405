package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// controllerFiles plans what the controllers need on a control-plane host, where they are to run, unless that is
// planned already.
func (b *builder) controllerFiles(h desired.Host) {
	want, id := b.in.Want.Controllers, b.id(step.ControllerFiles, h)
	if want == nil || b.has(id) || b.world.Is.Hosts[h.ID].Arch != want.Arch {
		return
	}
	seen := b.world.Is.Hosts[h.ID].ControllerFiles
	params := step.ControllerFilesParams{
		Image: want.Image.Name + " " + want.Image.Digest, Index: want.Index,
		Bundles: step.LackingBundles(want.Bundles, seen.Bundles),
	}
	var changes, needs []string
	if seen.Image != params.Image {
		changes = append(changes, want.Image.Name)
	}
	for _, blob := range want.Image.Blobs {
		params.Uploads = append(params.Uploads, strings.TrimPrefix(blob.Digest, "sha256:"))
	}
	for _, bundle := range params.Bundles {
		changes = append(changes, bundle.Name)
	}
	if images := b.id(step.Images, h); b.has(images) {
		needs = []string{images}
	}
	reason := "the controllers are to run there"
	if seen.Image != "" {
		reason = "it has others"
	}
	b.onHost(h, Step{
		Intent: step.With(params), Action: Change, Title: "bring the controllers' image and bundles", Reason: reason,
		Needs: needs, Changes: changes,
	})
}

// removeAddons plans that addons go.
func (b *builder) removeAddons(names []string) {
	for _, name := range names {
		b.onCluster("remove-addon/"+name, Step{
			Intent: step.With(step.RemoveAddonParams{Addon: name}), Action: Remove,
			Title:  "take addon " + name + " away",
			Reason: "the manifest does not want it any more",
		})
	}
}

// machines plans the MachineDeployments that are to be made, and those whose kubelets are to follow the cluster. Both
// need the kinds, which the controllers define.
func (b *builder) machines(d decide.Decision) {
	var needs []string
	if b.has("await-workloads") {
		needs = []string{"await-workloads"}
	}
	for _, want := range b.in.Want.MachineDeployments {
		name := want.Namespace + "/" + want.Name
		if !slices.Contains(d.CreateMachines, name) || b.has("machines/"+name) {
			continue
		}
		sum := sha256.Sum256([]byte(want.Object))
		intent := step.With(step.CreateMachinesParams{Namespace: want.Namespace, Name: want.Name})
		intent.Digest = hex.EncodeToString(sum[:])
		b.onCluster("machines/"+name, Step{
			Intent: intent, Action: Create, Title: "create MachineDeployment " + name,
			Reason: "not in the cluster; its controllers make its Machines", Needs: needs,
		})
	}
	for _, is := range b.world.Is.API.Pool.Deployed() {
		name := is.Namespace + "/" + is.Name
		if !slices.Contains(d.UpgradeMachines, name) || b.has("upgrade-machines/"+name) {
			continue
		}
		version := b.in.Want.KubernetesVersion
		b.onCluster("upgrade-machines/"+name, Step{
			Intent: step.With(step.UpgradeMachinesParams{Namespace: is.Namespace, Name: is.Name, Kubelet: version}),
			Action: Change, Title: "upgrade MachineDeployment " + name + " to " + version,
			Reason: "its kubelets are to be " + is.Kubelet + "; its controllers change them, one after the other",
			Needs:  b.planned(step.UpgradeControlPlane),
		})
	}
}
