package plan

import (
	"strings"

	"kubeone/internal/desired"
	"kubeone/internal/step"
)

// controllerFiles plans what the controllers need on a control-plane host, where they are to run, unless that is planned
// already.
func (b *builder) controllerFiles(h desired.Host) {
	want, id := b.in.Want.Controllers, b.id(step.ControllerFiles, h)
	if want == nil || b.has(id) {
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
