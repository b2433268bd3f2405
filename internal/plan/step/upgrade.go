package step

import (
	"cmp"
	"maps"
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Kinds that change the versions of hosts.
const (
	Fetch               Kind = "fetch"
	Check               Kind = "check"
	UpgradeControlPlane Kind = "upgrade-control-plane"
	UpgradeWorker       Kind = "upgrade-worker"
	SystemAddons        Kind = "system-addons"
)

// FetchParams are the files and images that a host lacks.
type FetchParams struct{ Content }

// Kind returns Fetch.
func (FetchParams) Kind() Kind { return Fetch }

func fetchRow() row {
	return row{
		kind: Fetch, about: "unpacks binaries and pins images alongside those in use; changes nothing yet",
		traits: installsRelease | runsByHand,
		place:  OnHost, concerns: ItsHost, group: groupFetch, params: paramsOf[FetchParams](),
		halts: always, effect: afterFetchImage,
	}
}

// afterFetchImage gives a host the images of cluster DNS, addons and workloads under their desired names. A note of
// addons stays if no images are desired.
func afterFetchImage(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	noted := maps.Clone(seen.Digests)
	if noted == nil {
		noted = map[string]string{}
	}
	delete(noted, desired.DNSImageDigest)
	delete(noted, desired.WorkloadImagesDigest)
	for name, want := range w.Config[h.ID] {
		if desired.IsImagesDigest(name) {
			noted[name] = want
		}
	}
	if !maps.Equal(noted, seen.Digests) {
		seen.Digests = noted
		w.Is.Hosts[h.ID] = seen
	}
}

// CheckParams say what the check before an upgrade tolerates.
type CheckParams struct {
	// DiscardEdits says that its static pods are written again even if they were edited.
	DiscardEdits bool `json:"discardEdits,omitempty"`
}

// Kind returns Check.
func (CheckParams) Kind() Kind { return Check }

func (p CheckParams) scriptVariables() []Variable {
	discard := ""
	if p.DiscardEdits {
		discard = "yes"
	}
	return []Variable{Text("DISCARD_EDITS", discard)}
}

func checkRow() row {
	return row{
		kind: Check, about: "checks that the upgrade of the host can start; changes nothing",
		traits: installsRelease | runsByHand,
		place:  OnHost, concerns: ItsHost, group: groupUpgrade, params: paramsOf[CheckParams](),
		begins: always, halts: always, partOf: desired.Upgrading, effect: noEffect,
	}
}

func upgradeControlPlaneRow() row {
	return row{
		kind: UpgradeControlPlane, about: "upgrades kubeadm, runtime and kubelet of a drained control-plane host",
		traits: installsRelease | runsByHand | writesStaticPods | coreOfActivity,
		place:  OnHost, group: groupUpgrade, event: "KubeOneUpgraded", secrets: []Secret{CredentialsSecret},
		halts: always, disrupts: stopsMember,
		partOf: desired.Upgrading, effect: afterUpgrade,
	}
}

// UpgradeWorkerParams say whether a worker is upgraded or downgraded.
type UpgradeWorkerParams struct {
	// Down says that the new kubelet is older than the present one, and cannot read all of its state.
	Down bool `json:"down,omitempty"`
}

// Kind returns UpgradeWorker.
func (UpgradeWorkerParams) Kind() Kind { return UpgradeWorker }

func (p UpgradeWorkerParams) scriptVariables() []Variable {
	down := ""
	if p.Down {
		down = "yes"
	}
	return []Variable{Text("DOWN", down)}
}

func upgradeWorkerRow() row {
	return row{
		kind: UpgradeWorker, about: "upgrades kubeadm, runtime and kubelet of a drained worker",
		traits: installsRelease | runsByHand | coreOfActivity,
		place:  OnHost, concerns: ItsHost, group: groupUpgrade, params: paramsOf[UpgradeWorkerParams](),
		event: "KubeOneUpgraded", secrets: []Secret{CredentialsSecret},
		halts: always, disrupts: stopsMember,
		partOf: desired.Upgrading, effect: afterUpgrade,
	}
}

// afterUpgrade gives a host the desired version and configuration.
func afterUpgrade(w *World, h desired.Host, _ Intent) {
	w.makeMember(h) // after an interrupted upgrade, the host may not have been working
	seen := w.Is.Hosts[h.ID]
	seen.Kubelet.Version = w.Want.KubeletVersion(h)
	seen.Containerd.Version = cmp.Or(h.Versions.Containerd, seen.Containerd.Version)
	if h.Role == desired.ControlPlane {
		seen.APIServerVersion = w.Want.KubernetesVersion
		seen.ControllerManagerVersion, seen.SchedulerVersion = "", "" // not the former ones any more
		w.Is.API.Version = w.Want.KubernetesVersion
	}
	seen.Digests, seen.Firewalls, seen.Upgrading = w.Config[h.ID], w.firewallsOf(seen), ""
	seen.Edited, seen.Restorable, seen.PodEdits, seen.StoppedTimers = nil, nil, nil, nil
	seen.Credentials = seen.CredentialsLeft()
	w.Is.Hosts[h.ID] = seen
}

func systemAddonsRow() row {
	return row{
		kind: SystemAddons, about: "applies kube-proxy and cluster DNS with kubeadm, from a control-plane host",
		traits: namesImages,
		place:  OnHost, group: groupAddons, effect: systemApplied,
	}
}

// systemApplied gives pods of kubeadm's addons their desired images, and the addons' objects their desired content.
func systemApplied(w *World, _ desired.Host, _ Intent) {
	w.Is.API.Pods = slices.Clone(w.Is.API.Pods)
	for i := range w.Is.API.Pods {
		p := &w.Is.API.Pods[i]
		if image, ours := w.System[p.App]; ours {
			p.Image = image
		}
	}
	if slices.ContainsFunc(w.Is.API.Compared[dns].Differences, func(d observed.Difference) bool {
		return d.Missing && d.Object == dnsDeployment
	}) {
		w.dnsMade()
	}
	for app := range w.System {
		w.changeComparison(app, func(c *observed.Comparison) { c.Differences = nil })
	}
}
