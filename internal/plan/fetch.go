package plan

import (
	"cmp"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/set"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/phrase"
)

// fetchAll plans what every host needs before the first is disturbed, and returns those steps.
func (b *builder) fetchAll(d decide.Decision) []string {
	var out []string
	for _, id := range slices.Concat(d.Upgrades, b.staying(d)) {
		h := b.host(id)
		title, reason := "fetch "+b.versionsNamed(h), ""
		if slices.Contains(d.Upgrades, id) {
			reason = b.versions(h)
		} else {
			title = "fetch images of Kubernetes " + b.in.Want.KubernetesVersion
			reason = strings.Join(d.System, ", ") + " of that version will run there"
		}
		out = append(out, b.fetch(h, title, reason))
	}
	return out
}

// fetch plans the binaries and images that a host lacks of its release, and returns the step.
func (b *builder) fetch(h desired.Host, title, reason string) string {
	artifacts, seen := b.artifacts(h), b.world.Is.Hosts[h.ID]
	binaries, images := artifacts.BinariesFor(h.Role), artifacts.ImagesFor(h.Role)
	files, layers := missingBinaries(binaries, artifacts.Pushed, seen), imageContent(images, artifacts.Pushed)
	files.Uploads = set.Union(files.Uploads, layers.Uploads)
	files.Downloads = append(files.Downloads, layers.Downloads...)
	return b.onHost(h, Step{
		Intent: step.With(step.FetchParams{Content: files}), Action: Create, Title: title, Reason: reason,
		Changes: append(newBinaries(binaries, seen), phrase.Count(len(images), "pinned image")),
	})
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

// fetchRenamed plans the image of cluster DNS for hosts that lack it under the wanted name: its pods may come to any of
// them, and a host that gets images from a bundle has no registry to pull it from. It returns what else differs.
func (b *builder) fetchRenamed(drift map[string][]string) map[string][]string {
	rest := map[string][]string{}
	for _, h := range b.in.Want.Hosts() {
		names := otherDrift(drift[h.ID])
		if len(names) > 0 {
			rest[h.ID] = names
		}
		if len(names) == len(drift[h.ID]) {
			continue
		}
		b.renamed = append(b.renamed, b.fetch(h, "bring the image of cluster DNS",
			"the host does not have "+cmp.Or(b.in.System["kube-dns"], "it")+" yet"))
	}
	return rest
}

// otherDrift is what of a host's drift no fetch takes away.
func otherDrift(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == desired.DNSImageDigest })
}
