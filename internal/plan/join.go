package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"kubeone/internal/decide"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/phrase"
	"kubeone/internal/text/set"
	"slices"
	"strings"
)

func (b *builder) installCluster(d decide.Decision) {
	leader := b.hostByID(d.Leader)
	// The leader's uploads come first. The others' follow while it creates the cluster.
	b.first = leader.ID
	for _, id := range d.Prepare {
		b.addPrepareSteps(b.hostByID(id), d)
	}
	b.addPrepareSteps(leader, d)
	b.init = b.onHost(leader, Step{
		Intent: plainIntent(step.Init), Action: Create, Title: "create the cluster",
		Reason: "no control-plane host belongs to a cluster",
		Needs:  []string{b.stepID(step.Images, leader)},
		Changes: []string{
			"certificate authorities", "etcd, a single member", "API server, controller manager, scheduler",
			"kube-proxy and CoreDNS",
		},
	})
	for _, id := range d.Joins {
		if id != leader.ID {
			b.addHostJoinSteps(b.hostByID(id), leader, d)
		}
	}
	b.nodeReady(leader, b.init)
}

func (b *builder) addJoinSteps(d decide.Decision) {
	leader := b.hostByID(d.Leader)
	for _, id := range d.Joins {
		h := b.hostByID(id)
		b.addPrepareSteps(h, d)
		b.addHostJoinSteps(h, leader, d)
	}
}

// addPrepareSteps plans to prepare a bare host for its join, unless that is planned already.
func (b *builder) addPrepareSteps(h desired.Host, d decide.Decision) {
	if b.hasStep(b.stepID(step.Prepare, h)) {
		return
	}
	seen := b.world.Is.Hosts[h.ID]
	reason := "it has no Kubernetes"
	if d.Hosts[h.ID].Resume {
		reason = "an unfinished kubeone installation"
	}
	packages := preflight.Packages(&seen)
	if len(packages) > 0 {
		reason += "; installs " + strings.Join(packages, " and ") + " from the package source of the host"
	}
	if files := preflight.ForeignCNI(b.in.Want.Network.CNI, &seen); len(files) > 0 {
		reason += "; moves other CNI configuration in /etc/cni/net.d aside until a reset: " +
			strings.Join(files, ", ")
	}
	if changes := b.firewallChanges(h); len(changes) > 0 {
		reason += "; " + strings.Join(changes, "; ")
	}
	artifacts := b.hostArtifacts(h)
	binaries, images := artifacts.BinariesFor(h.Role), artifacts.ImagesFor(h.Role)
	prepared := b.onHost(h, Step{
		Intent: step.With(step.PrepareParams{
			Content: missingBinaries(binaries, artifacts.Pushed, seen), Packages: packages,
		}),
		Action: Create, Title: "install container runtime and kubelet", Reason: reason,
		Needs: b.afterFirst(step.Prepare, h),
		Changes: slices.Concat(packageChanges(seen), b.firewallChanges(h), binaryChanges(binaries, seen),
			swapChanges(seen)),
	})
	b.onHost(h, Step{
		Intent: step.With(step.ImagesParams{Content: imageContent(images, artifacts.Pushed)}),
		Action: Create, Title: "import images",
		Reason: fmt.Sprintf("%s of Kubernetes %s", phrase.Count(len(images), "image"), b.in.Want.KubernetesVersion),
		Needs:  append([]string{prepared}, b.afterFirst(step.Images, h)...), Changes: imageChanges(images),
	})
	if h.Role == desired.ControlPlane {
		b.controllerFiles(h)
	}
}

// afterFirst returns the step of that kind on the host whose uploads come first, unless it is this host.
func (b *builder) afterFirst(k step.Kind, h desired.Host) []string {
	if b.first == "" || b.first == h.ID {
		return nil
	}
	return []string{b.stepID(k, b.hostByID(b.first))}
}

// addHostJoinSteps plans a host's join and predicts that it is a healthy member afterwards.
func (b *builder) addHostJoinSteps(h, leader desired.Host, d decide.Decision) {
	needs := append(b.clearNode(h, d.Hosts[h.ID]), b.stepID(step.Images, h))
	if b.init != "" {
		needs = append(needs, b.init)
	}
	needs = append(needs, b.ownTokens()...)
	reason := "not a member of the cluster"
	if d.Hosts[h.ID].Resume {
		reason = "its join is unfinished"
	}
	if h.Role == desired.ControlPlane {
		b.nodeReady(h, b.joinControlPlane(h, leader, reason, needs))
		return
	}
	b.nodeReady(h, b.onHost(h, Step{
		Intent: plainIntent(step.JoinWorker), Action: Create, Title: "join as worker", Reason: reason,
		Needs: needs, Changes: []string{"kubelet started", "Node " + b.nodeName(h)},
	}))
}

// joinControlPlane plans the join of a control-plane host, and returns its last step.
func (b *builder) joinControlPlane(h, leader desired.Host, reason string, needs []string) string {
	pki := b.onHost(h, Step{
		Intent: step.With(step.CopyPKIParams{Peer: leader.ID}), Action: Create,
		Title:  "copy the CAs from " + b.names[leader.ID],
		Reason: reason, Needs: needs, Changes: []string{"/etc/kubernetes/pki"},
	})
	prepared := b.onHost(h, Step{
		Intent: plainIntent(step.JoinPrepare), Action: Create, Title: "join: certificates and kubelet", Reason: reason,
		Needs: []string{pki}, Changes: []string{"certificates", "kubelet started"},
	})
	begun := b.hasBegun(h)
	etcd := b.onHost(h, Step{
		Intent: plainIntent(step.JoinEtcd), Action: Create, Title: "join: etcd member", Reason: reason,
		Needs: set.Union([]string{prepared}, b.begun), Changes: []string{"etcd member, first as a learner"},
	})
	if begun {
		b.begun = []string{etcd}
	}
	return b.onHost(h, Step{
		Intent: plainIntent(step.JoinFinish), Action: Create, Title: "join: control plane", Reason: reason,
		Needs: []string{etcd}, Changes: []string{"API server, controller manager, scheduler", "Node " + b.nodeName(h)},
	})
}

// hasBegun reports whether the host's unfinished join has reached etcd. etcd takes one learner at a time: no other
// member can be added before this one is finished.
func (b *builder) hasBegun(h desired.Host) bool {
	return b.in.Is.Hosts[h.ID].EtcdData == observed.Yes || b.in.Is.Etcd.Reached == observed.Yes && b.memberIndex(h) >= 0
}

// ownTokens plans, once and if needed, that a join token is good for its own Node only. Steps that get a token need it.
func (b *builder) ownTokens() []string {
	if b.world.Is.API.AutoApproval == observed.Yes {
		b.onCluster(string(step.RemoveAutoApproval), Step{
			Intent: plainIntent(step.RemoveAutoApproval), Action: Remove,
			Title:   "remove automatic approval of Node certificates",
			Reason:  "the kubeadm rule accepts every join token for every Node",
			Changes: []string{"ClusterRoleBinding kubeadm:node-autoapprove-bootstrap"},
		})
	}
	if b.hasStep(string(step.RemoveAutoApproval)) {
		return []string{string(step.RemoveAutoApproval)}
	}
	return nil
}

// nodeReady plans the end of a join: labels, annotations and taints on the Node, and the wait for it to be Ready. When
// the network plugin's addon is planned, it becomes a need of this step.
func (b *builder) nodeReady(h desired.Host, after string) {
	b.onHost(h, Step{
		Intent: nodeMeta(h), Action: Create, Title: "Node Ready",
		Reason: "labels, annotations and taints from the manifest",
		Needs:  []string{after},
	})
}

func nodeMeta(h desired.Host) step.Intent {
	return step.With(step.NodeReadyParams{Labels: h.Labels, Annotations: h.Annotations, Taints: h.Taints})
}

// controllerFiles plans the upload of what the controllers need on a control-plane host, unless that is planned
// already.
func (b *builder) controllerFiles(h desired.Host) {
	want, id := b.in.Want.Controllers, b.stepID(step.ControllerFiles, h)
	if want == nil || b.hasStep(id) || b.world.Is.Hosts[h.ID].Arch != want.Arch {
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
	if images := b.stepID(step.Images, h); b.hasStep(images) {
		needs = []string{images}
	}
	reason := "the controllers will run there"
	if seen.Image != "" {
		reason = "it has another version of these files"
	}
	b.onHost(h, Step{
		Intent: step.With(params), Action: Change, Title: "upload the controller image and bundles", Reason: reason,
		Needs: needs, Changes: changes,
	})
}

// removeAddons plans the removal of addons.
func (b *builder) removeAddons(names []string) {
	for _, name := range names {
		deleted, kept := decide.LeftObjects(b.in, b.world.Is.API, name)
		reason := "it is no longer in the manifest"
		if slices.Contains(b.in.DeletedAddons, name) {
			reason = "the manifest deletes it"
		}
		b.onCluster("remove-addon/"+name, Step{
			Intent: step.With(step.RemoveAddonParams{Addon: name, Delete: deleted}), Action: Remove,
			Title: "remove addon " + name, Reason: reason, Changes: describeDeletions(deleted, kept),
		})
	}
}

// planMachineDeployments plans missing MachineDeployments, and updates of those whose kubelets follow the cluster's
// version. Both need CustomResourceDefinitions, which the controllers' addon has.
func (b *builder) planMachineDeployments(d decide.Decision) {
	var needs []string
	if b.hasStep("await-workloads") {
		needs = []string{"await-workloads"}
	}
	for _, want := range b.in.Want.MachineDeployments {
		name := want.Namespace + "/" + want.Name
		if !slices.Contains(d.CreateMachines, name) || b.hasStep("machines/"+name) {
			continue
		}
		sum := sha256.Sum256([]byte(want.Object))
		intent := step.With(step.CreateMachinesParams{Namespace: want.Namespace, Name: want.Name})
		intent.Digest = hex.EncodeToString(sum[:])
		b.onCluster("machines/"+name, Step{
			Intent: intent, Action: Create, Title: "create MachineDeployment " + name,
			Reason: "it is not in the cluster; the controllers create its Machines", Needs: needs,
		})
	}
	for _, is := range b.world.Is.API.Pool.Deployed() {
		name := is.Namespace + "/" + is.Name
		if !slices.Contains(d.UpgradeMachines, name) || b.hasStep("upgrade-machines/"+name) {
			continue
		}
		version := b.in.Want.KubernetesVersion
		b.onCluster("upgrade-machines/"+name, Step{
			Intent: step.With(step.UpgradeMachinesParams{Namespace: is.Namespace, Name: is.Name, Kubelet: version}),
			Action: Change, Title: "upgrade MachineDeployment " + name + " to " + version,
			Reason: "its kubelets must be " + is.Kubelet + "; the controllers upgrade them one by one",
			Needs:  b.plannedSteps(step.UpgradeControlPlane),
		})
	}
}

// fetchAll plans what every host needs before any host is disrupted, and returns those steps.
func (b *builder) fetchAll(d decide.Decision) []string {
	var out []string
	for _, id := range slices.Concat(d.Upgrades, b.workersKeepingKubelet(d)) {
		h := b.hostByID(id)
		title, reason := "fetch "+b.versionsNamed(h), ""
		if slices.Contains(d.Upgrades, id) {
			reason = b.versionChange(h)
		} else {
			title = "fetch images of Kubernetes " + b.in.Want.KubernetesVersion
			reason = strings.Join(d.System, ", ") + " of the new version will run there"
		}
		out = append(out, b.fetchArtifacts(h, title, reason))
	}
	return out
}

// fetchArtifacts plans the missing binaries and images of a host's release, and returns the step.
func (b *builder) fetchArtifacts(h desired.Host, title, reason string) string {
	artifacts, seen := b.hostArtifacts(h), b.world.Is.Hosts[h.ID]
	binaries, images := artifacts.BinariesFor(h.Role), artifacts.ImagesFor(h.Role)
	files, layers := missingBinaries(binaries, artifacts.Pushed, seen), imageContent(images, artifacts.Pushed)
	files.Uploads = set.Union(files.Uploads, layers.Uploads)
	files.Downloads = append(files.Downloads, layers.Downloads...)
	return b.onHost(h, Step{
		Intent: step.With(step.FetchParams{Content: files}), Action: Create, Title: title, Reason: reason,
		Changes: append(newBinaries(binaries, seen), phrase.Count(len(images), "pinned image")),
	})
}

// workersKeepingKubelet returns the workers that keep their kubelet in an upgrade of kube-proxy. They lack the new
// version's image of kube-proxy.
func (b *builder) workersKeepingKubelet(d decide.Decision) []string {
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

// fetchRenamed plans the images of cluster DNS, addons and Helm releases for hosts that lack them under the desired
// names: pods may run on any of them, and a host that gets images from a bundle has no registry to pull from. It
// returns the remaining drift.
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
		title, reason := "fetch the image of cluster DNS", "the host lacks "+cmp.Or(b.in.System["kube-dns"], "it")+" yet"
		if slices.Contains(drift[h.ID], desired.AddonImagesDigest) {
			title = "fetch images of addons"
			reason = "the host lacks images of " + problem.List(b.in.Want.NotedAddons())
		}
		if slices.Contains(drift[h.ID], desired.WorkloadImagesDigest) {
			title, reason = "fetch images of addons", "the host lacks images that the bundle has for addons and Helm releases"
		}
		b.renamed = append(b.renamed, b.fetchArtifacts(h, title, reason))
	}
	return rest
}

// otherDrift returns a host's drift except what a fetch removes.
func otherDrift(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), desired.IsImagesDigest)
}
