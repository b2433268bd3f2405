package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

func (b *builder) applyResources(d decide.Decision) {
	for _, id := range d.ControllerFiles {
		b.controllerFiles(b.hostByID(id))
	}
	network := b.applyNetworkRelease(d.HelmReleases)
	b.applyAddons(d.Addons)
	for _, id := range d.Metadata {
		if h := b.hostByID(id); !b.hasStep(b.stepID(step.NodeReady, h)) {
			b.onHost(h, Step{
				Intent: nodeMeta(h), Action: Change, Title: "set labels, annotations and taints",
				Reason: "those on the Node differ from the manifest", Changes: []string{"Node " + b.nodeName(h)},
			})
		}
	}
	b.uncordonLeft(d)
	b.staleNodes(d.StaleNodes)
	if d.AutoApproval {
		b.ownTokens()
	}
	if len(d.Serving) > 0 {
		b.onCluster(string(step.ApproveServing), Step{
			Intent: plainIntent(step.ApproveServing), Action: Change,
			Title:   "approve serving certificates",
			Reason:  "kubelets wait for them: " + problem.List(d.Serving),
			Changes: []string{"CertificateSigningRequests of kubelets"},
		})
	}
	b.systemSettings(d)
	b.systemAddons(d)
	b.removeAddons(d.RemoveAddons)
	b.addons = append(b.addons, b.applyReleases(b.releasesBeforePods(d.HelmReleases))...)
	switch {
	case len(d.Addons)+len(d.System) > 0 || network:
		b.awaitWorkloads("addons were applied")
	case len(d.Settings) > 0:
		b.awaitWorkloads("settings were changed")
	}
	b.removeKubeProxy(d)
	b.applyReleases(d.HelmReleases)
	b.removeReleases(d.RemoveReleases)
	b.planMachineDeployments(d)
	if d.Record {
		b.saveRecord(b.recordReason())
	}
}

// removeKubeProxy plans to delete kube-proxy after the network plugin runs everywhere. Until then both serve Services.
func (b *builder) removeKubeProxy(d decide.Decision) {
	if !d.RemoveKubeProxy || b.hasStep(string(step.RemoveKubeProxy)) {
		return
	}
	b.awaitWorkloads("kube-proxy is removed")
	b.onCluster(string(step.RemoveKubeProxy), Step{
		Intent: plainIntent(step.RemoveKubeProxy), Action: Remove, Title: "remove kube-proxy",
		Reason:  "the network plugin " + b.in.Want.Network.CNI.Name + " does its work",
		Needs:   []string{"await-workloads"},
		Changes: []string{"delete its DaemonSet, configuration and permissions; its rules stay on hosts until they restart"},
	})
}

// recordReason returns why the record must change.
func (b *builder) recordReason() string {
	switch {
	case b.credentialsOfMachines():
		return "credentials on Machine hosts differ"
	case b.world.Is.API.Record.IsUnreadable(decide.RepairableKeys(b.world.Want, b.world.Is)...):
		return "the cluster record is partly unreadable"
	}
	return "the cluster record holds another manifest"
}

// credentialsOfMachines reports whether the record's credentials for Machine hosts differ from the manifest's.
func (b *builder) credentialsOfMachines() bool {
	p := b.world.Is.API.Pool
	return p != nil && p.Credentials == observed.No
}

// awaitWorkloads plans one wait until everything that was applied runs.
func (b *builder) awaitWorkloads(reason string) {
	if !b.hasStep("await-workloads") {
		b.onCluster("await-workloads", Step{
			Intent: plainIntent(step.AwaitWorkloads), Action: Change, Title: "wait for cluster DNS and addons",
			Reason: reason,
			Needs:  slices.Concat(b.addons, b.controllers, b.custom),
		})
	}
}

// applyAddons plans the addons of these names. Custom addons follow those of kubeone, one after another.
func (b *builder) applyAddons(names []string) {
	isCustom := func(name string) bool { return slices.Contains(b.in.CustomAddons, name) }
	for _, name := range slices.DeleteFunc(slices.Clone(names), isCustom) {
		needs := slices.Clone(b.renamed)
		if b.init != "" {
			needs = append(needs, b.init)
		}
		if name == desired.ControllersAddon {
			needs = append(needs, b.plannedSteps(step.ControllerFiles)...)
		}
		id := b.applyAddon(name, needs)
		if name == desired.ControllersAddon {
			b.controllers = []string{id} // no Node waits for it
		} else {
			b.addons = append(b.addons, id)
		}
	}
	needs := slices.Concat(b.addons, b.renamed)
	if b.init != "" {
		needs = append(needs, b.init)
	}
	for _, name := range b.in.CustomAddons {
		if slices.Contains(names, name) {
			id := b.applyAddon(name, needs)
			needs, b.custom = append(needs, id), append(b.custom, id)
		}
	}
}

// applyAddon plans one addon and returns the ID of the step.
func (b *builder) applyAddon(name string, needs []string) string {
	had := b.world.Is.API.Addons[name]
	deleted, kept := decide.LeftObjects(b.in, b.world.Is.API, name)
	intent := step.With(step.ApplyAddonParams{Addon: name, Manifest: b.in.AddonManifests[name], Delete: deleted})
	intent.Digest = b.in.Addons[name]
	return b.onCluster("addon/"+name, Step{
		Intent: intent, Action: addonAction(had), Title: "apply addon " + name,
		Reason: b.addonReason(name, had), Needs: slices.Clone(needs), Changes: describeDeletions(deleted, kept),
	})
}

// maxDeletions is how many objects the changes of a step name.
const maxDeletions = 12

func describeDeletions(deleted, kept []observed.AddonObject) []string {
	var out []string
	add := func(verb string, objects []observed.AddonObject, after string) {
		for i, o := range objects {
			if i == maxDeletions {
				out = append(out, fmt.Sprintf("%s %d more objects", verb, len(objects)-i))
				return
			}
			out = append(out, verb+" "+o.String()+after)
		}
	}
	add("delete", deleted, "")
	add("keep", kept, ", which others may use")
	return out
}

// missingAddons returns the addons that are not in the cluster, sorted. If an installation was interrupted before the
// network plugin, no Node is Ready, and an upgrade would wait for that. Of custom addons, it returns only the one that
// the cloud's controller manager needs.
func (b *builder) missingAddons() []string {
	if b.in.About != nil || b.in.Want.Endpoint.Later != "" ||
		b.world.Is.API.Record.IsUnreadable(observed.RecordAddons) {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b.in.Addons)) {
		isLater := name == desired.ControllersAddon ||
			slices.Contains(b.in.CustomAddons, name) && name != desired.CloudAddon
		if !isLater && b.world.Is.API.Addons[name] == "" {
			out = append(out, name)
		}
	}
	return out
}

func (b *builder) addonReason(name, had string) string {
	switch {
	case had == "":
		return "not in the cluster"
	case had != b.in.Addons[name]:
		return "the cluster runs an older version of it"
	case len(b.world.Is.API.Compared[name].Differences) == 0:
		return "the list of its objects in the cluster differs"
	}
	return listDifferences(b.world.Is.API.Compared[name].Differences)
}

// namedDifferences is how many objects a reason names.
const namedDifferences = 3

// listDifferences returns a sentence about objects that differ from their desired state.
func listDifferences(of []observed.Difference) string {
	var parts []string
	for i, d := range of {
		if i == namedDifferences {
			parts = append(parts, fmt.Sprintf("and %d more", len(of)-i))
			break
		}
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

func addonAction(had string) Action {
	if had == "" {
		return Create
	}
	return Change
}
