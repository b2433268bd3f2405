package plan

import (
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// applyNetworkRelease plans the Helm release that is the network plugin, if its key is among these, and reports whether
// it is.
func (b *builder) applyNetworkRelease(keys []string) bool {
	for _, want := range b.in.HelmReleases {
		id := "release/" + want.Key()
		if !want.Network || !slices.Contains(keys, want.Key()) || b.hasStep(id) {
			continue
		}
		needs := slices.Clone(b.renamed)
		if b.init != "" {
			needs = append(needs, b.init)
		}
		b.addons = append(b.addons, b.onCluster(id, b.releaseStep(want, needs)))
		return true
	}
	return false
}

// missingNetwork returns the key of the Helm release that is the network plugin, if the cluster lacks it.
func (b *builder) missingNetwork() []string {
	if b.in.About != nil || b.in.Want.Endpoint.Later != "" {
		return nil
	}
	var out []string
	for _, want := range b.in.HelmReleases {
		if _, found := b.world.Is.API.HelmReleases[want.Key()]; want.Network && !found {
			out = append(out, want.Key())
		}
	}
	return out
}

// applyReleases plans the Helm releases with these keys, one after another, and returns the IDs of the steps. Charts
// may run hooks and wait for pods, so the network, cluster DNS, addons and
// images come first.
func (b *builder) applyReleases(keys []string) []string {
	needs := slices.Concat(b.addons, b.controllers, b.custom, b.renamed)
	if b.init != "" {
		needs = append(needs, b.init)
	}
	if b.hasStep("await-workloads") {
		needs = append(needs, "await-workloads")
	}
	var out []string
	for _, want := range b.in.HelmReleases {
		id := "release/" + want.Key()
		if !slices.Contains(keys, want.Key()) || b.hasStep(id) {
			continue
		}
		id = b.onCluster(id, b.releaseStep(want, slices.Clone(needs)))
		needs, out = append(needs, id), append(out, id)
	}
	return out
}

// releasesBeforePods returns those of these Helm releases that ordinary pods may need: the cloud's controller manager,
// or all if one of them may be the network plugin or the controller manager of another cloud.
func (b *builder) releasesBeforePods(keys []string) []string {
	managers := b.cloudManagers()
	if b.in.Want.Network.CNI.Name == desired.ExternalCNI || b.in.Want.ExternalCloud != "" && len(managers) == 0 {
		return keys
	}
	return slices.DeleteFunc(managers, func(key string) bool { return !slices.Contains(keys, key) })
}

// cloudManagers returns the keys of the desired Helm releases that are the cloud's controller manager.
func (b *builder) cloudManagers() []string {
	var out []string
	for _, want := range b.in.HelmReleases {
		if want.CloudManager {
			out = append(out, want.Key())
		}
	}
	return out
}

// missingManagers returns the keys of cloudManagers that are not in the cluster. If an installation was interrupted
// before them, cluster DNS does not run, and an upgrade would wait for that.
func (b *builder) missingManagers() []string {
	if b.in.About != nil || b.in.Want.Endpoint.Later != "" {
		return nil
	}
	return slices.DeleteFunc(b.cloudManagers(), func(key string) bool {
		_, found := b.world.Is.API.HelmReleases[key]
		return found
	})
}

func (b *builder) releaseStep(want desired.HelmRelease, needs []string) Step {
	is, found := b.world.Is.API.HelmReleases[want.Key()]
	chart := b.charts[want.Key()]
	intent := step.With(step.ApplyReleaseParams{
		Namespace: want.Namespace, Name: want.Name, Version: chart.Version, Source: want.Source, Values: want.Values,
		TimeoutSeconds: want.TimeoutSeconds,
	})
	intent.Digest = chart.Digest
	s := Step{
		Intent: intent, Action: Change, Title: "upgrade Helm release " + want.Key(),
		Reason: b.releaseReason(want, is), Needs: needs, Changes: []string{"chart " + want.Chart},
	}
	if !found {
		s.Action, s.Title, s.Reason = Create, "install Helm release "+want.Key(), "not in the cluster"
	}
	if chart.Version != "" && (!found || is.Version != chart.Version) {
		s.Changes = append(s.Changes, strings.TrimSuffix("version "+is.Version+" -> "+chart.Version, " "))
		if !found || is.Version == "" {
			s.Changes[len(s.Changes)-1] = "version " + chart.Version
		}
	}
	if chart.Digest != "" {
		s.Changes = append(s.Changes, "chart digest sha256:"+chart.Digest)
	}
	return s
}

// releaseReason returns why a release is upgraded.
func (b *builder) releaseReason(want desired.HelmRelease, is observed.HelmRelease) string {
	switch {
	case !is.Managed:
		return "it was not installed by kubeone"
	case is.Interrupted():
		return "an operation on it was interrupted"
	case is.Source != want.Source && is.Values != want.Values:
		return "its chart and values differ from the manifest"
	case is.Source != want.Source:
		return "its chart differs from the manifest"
	case is.Values != want.Values:
		return "its values differ from the manifest"
	case is.Status != observed.ReleaseDeployed:
		return "its last operation did not succeed: it is " + is.Status
	}
	return listDifferences(b.world.Is.API.Compared[want.Key()].Differences)
}

// removeReleases plans to uninstall Helm releases.
func (b *builder) removeReleases(keys []string) {
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		b.onCluster("remove-release/"+key, Step{
			Intent: step.With(step.RemoveReleaseParams{Namespace: namespace, Name: name}), Action: Remove,
			Title: "uninstall Helm release " + key, Reason: "it is no longer in the manifest",
			Changes: []string{"delete its objects, but not its CustomResourceDefinitions in crds/"},
		})
	}
}
