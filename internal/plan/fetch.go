package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/observed"
	"kubeone/internal/step"
)

// fetchAll plans what every host needs before the first is disturbed, and returns those steps.
func (b *builder) fetchAll(d decide.Decision) []string {
	var out []string
	for _, id := range slices.Concat(d.Upgrades, b.staying(d)) {
		h, seen := b.host(id), b.world.Is.Hosts[id]
		artifacts := b.artifacts(h)
		images := artifacts.ImagesFor(h.Role)
		files := missingBinaries(artifacts.BinariesFor(h.Role), artifacts.Pushed, seen)
		layers := imageContent(images, artifacts.Pushed)
		files.Uploads, files.Downloads = union(files.Uploads, layers.Uploads),
			append(files.Downloads, layers.Downloads...)
		title, reason := "fetch "+b.versionsNamed(h), ""
		if slices.Contains(d.Upgrades, id) {
			reason = b.versions(h)
		} else {
			title = "fetch images of Kubernetes " + b.in.Want.KubernetesVersion
			reason = strings.Join(d.System, ", ") + " of that version will run there"
		}
		out = append(out, b.onHost(h, Step{
			Intent: step.With(step.FetchParams{Content: files}), Action: Create, Title: title, Reason: reason,
			Changes: append(newBinaries(artifacts.BinariesFor(h.Role), seen), count(len(images), "pinned image")),
		}))
	}
	return out
}

// staying are the workers that keep their kubelet in an upgrade after which kube-proxy follows: it runs there too, of a
// version whose image they do not have yet.
func (b *builder) staying(d decide.Decision) []string {
	if len(d.System) == 0 {
		return nil
	}
	var out []string
	for _, h := range b.in.Want.Workers {
		seen := b.world.Is.Hosts[h.ID]
		if h.Versions.Kubernetes != "" && !slices.Contains(d.Upgrades, h.ID) && seen.Reach == observed.Reached &&
			seen.Marker != nil && seen.Marker.Complete && (b.in.Limit == nil || b.in.Limit[h.ID]) {
			out = append(out, h.ID)
		}
	}
	return out
}
