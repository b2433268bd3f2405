package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// upgrade plans the way of hosts to the wanted version: first all that disturbs nobody (binaries and images onto every
// host, a snapshot of etcd), then the control plane host by host, kube-proxy and cluster DNS, and then the workers in waves:
// a kube-proxy that has just lost its API server, or is being replaced, sends requests to pods that a drain has ended. A host's turn is a check,
// drain, the upgrade itself, and opening it again; what an earlier run left closed is opened first.
func (b *builder) upgrade(d decide.Decision) bool {
	b.uncordonLeft(d)
	fetched := b.fetchAll(d)
	control, workers := b.split(d.Upgrades)
	last := b.upgradeControlPlane(d, control, fetched)
	if last == nil && len(control) > 0 {
		return false // blocked
	}
	if len(control) == 0 {
		last = fetched
	}
	if len(d.System) > 0 {
		last = b.systemFollows(d, last)
	}
	b.upgradeWorkers(d, workers, last)
	b.barrier = union(b.barrier, last) // addons and joins follow the control plane's version
	b.in.ForceUpgrade = false          // a forced roll-out is once
	return true
}

// uncordonLeft opens what an interrupted run left closed and is in order; all else waits for it.
func (b *builder) uncordonLeft(d decide.Decision) {
	var opened []string
	for _, id := range d.Uncordon {
		h := b.host(id)
		if !b.has(b.id(Uncordon, h)) {
			reason := "a run that was interrupted left it cordoned"
			if n, _ := b.findNode(h); !n.Unschedulable {
				reason = "it is open, and the mark of a run that had cordoned it is left"
			}
			id := b.uncordon(h, reason, nil)
			b.intent(id, func(i *Intent) { i.Resume = true })
			opened = append(opened, id)
			b.predictOpen(h)
		}
	}
	b.barrier = union(b.barrier, opened)
}

func (b *builder) split(ids []string) (control, workers []desired.Host) {
	for _, id := range ids {
		if h := b.host(id); h.Role == desired.ControlPlane {
			control = append(control, h)
		} else {
			workers = append(workers, h)
		}
	}
	return control, workers
}

// fetchAll plans what every host needs before the first is disturbed, and returns those steps.
func (b *builder) fetchAll(d decide.Decision) []string {
	var out []string
	for _, id := range d.Upgrades {
		h, seen := b.host(id), b.is.Hosts[id]
		artifacts := b.in.Want.Artifacts[seen.Arch]
		images := artifacts.ImagesFor(h.Role)
		step := b.step(h, Fetch, "fetch Kubernetes "+b.in.Want.KubernetesVersion, b.versions(id), Create, NoRisk, nil,
			append(newBinaries(artifacts.BinariesFor(h.Role), seen), count(len(images), "pinned image")))
		b.intent(step, func(i *Intent) {
			i.Uploads, i.Downloads = missingBinaries(artifacts.BinariesFor(h.Role), artifacts.Pushed, seen)
			up, down := missingImages(images, artifacts.Pushed, observed.Host{}) // the host itself knows which content it has
			i.Uploads, i.Downloads = union(i.Uploads, up), append(i.Downloads, down...)
		})
		out = append(out, step)
	}
	return out
}

// upgradeControlPlane plans one control-plane host after the other, the first after a snapshot of etcd. It returns what
// the workers wait for; nil where there is nothing to wait for, or a host must not be stopped.
func (b *builder) upgradeControlPlane(d decide.Decision, hosts []desired.Host, fetched []string) []string {
	if len(hosts) == 0 {
		return nil
	}
	keeper := hosts[len(hosts)-1]
	previous := []string{b.step(keeper, Snapshot, "snapshot of etcd", "before anything is changed", Create, NoRisk, fetched, []string{"/var/lib/kubeone/snapshots"})}
	for _, h := range hosts {
		changes := []string{"API server, controller manager, scheduler " + b.in.Want.KubernetesVersion, "etcd, where its version differs", "certificates renewed", "kubelet"}
		if i := b.member(h); i >= 0 {
			verdict := quorum.SafeToStop(b.is.Etcd.Members, b.is.Etcd.Members[i].ID)
			if !verdict.Safe {
				b.block("the etcd member of " + b.node(h) + " must not be stopped: " + verdict.Why)
				return nil
			}
			if verdict.Outage {
				changes = append(changes, "outage: "+verdict.Why)
			}
		}
		previous = []string{b.turn(h, UpgradeControlPlane, append(changes, drifted(d, h)...), previous)}
		b.predictUpgraded(h)
	}
	return previous
}

// upgradeWorkers plans the workers: one first, alone, if that is wanted, and when its turn has gone well as many at a time
// as may be unavailable of those that the run may touch.
func (b *builder) upgradeWorkers(d decide.Decision, hosts []desired.Host, after []string) {
	wide := b.in.Want.Upgrade.AtOnce(b.workersInLimit())
	canary := b.in.Want.Upgrade.Canary
	done := make([]string, 0, len(hosts))
	for n, h := range hosts {
		if canary && n == 1 {
			after = union(after, done[:1]) // a canary that was skipped has shown nothing
		}
		turn := b.turn(h, UpgradeWorker, append([]string{"kubelet, container runtime"}, drifted(d, h)...), after)
		if before := predecessor(n, wide, canary); before > 0 || before == 0 && !canary {
			b.after(b.id(Check, h), done[before])
		}
		done = append(done, turn)
		b.predictUpgraded(h)
	}
}

// drifted says which configuration of the host, besides its version, is another than the manifest's: the upgrade brings it.
func drifted(d decide.Decision, h desired.Host) []string {
	if len(d.Drift[h.ID]) == 0 {
		return nil
	}
	return []string{"configuration, which differs from the manifest: " + strings.Join(d.Drift[h.ID], ", ")}
}

func (b *builder) workersInLimit() int {
	if b.in.Limit == nil {
		return len(b.in.Want.Workers)
	}
	n := 0
	for _, h := range b.in.Want.Workers {
		if b.in.Limit[h.ID] {
			n++
		}
	}
	return n
}

// after makes the step with that ID wait for the end of another, however that ends.
func (b *builder) after(id, other string) {
	for i := range b.plan.Steps {
		if b.plan.Steps[i].ID == id {
			b.plan.Steps[i].After = append(b.plan.Steps[i].After, other)
		}
	}
}

// predecessor is the worker whose turn must be over before the n-th one's begins, -1 for none: at most wide of them are
// under way, and all wait for a canary.
func predecessor(n, wide int, canary bool) int {
	if canary && n > 0 {
		return max(0, n-wide)
	}
	return n - wide
}

// turn plans one host's turn and returns its last step.
func (b *builder) turn(h desired.Host, k Kind, changes, needs []string) string {
	reason := b.versions(h.ID)
	check := b.step(h, Check, "check before its turn", "binaries and images there, disk, etcd", Change, NoRisk, needs, nil)
	drain := b.step(h, DrainNode, "cordon and drain", reason, Change, Drains, []string{check}, []string{"pods move to other nodes"})
	b.intent(drain, func(i *Intent) { i.Drain = b.draining(true) })
	up := b.step(h, k, "upgrade to "+b.in.Want.KubernetesVersion, reason, Change, Restarts, []string{drain}, changes)
	return b.uncordon(h, "it is upgraded", []string{up})
}

func (b *builder) uncordon(h desired.Host, reason string, needs []string) string {
	return b.step(h, Uncordon, "Ready in the wanted version, uncordon", reason, Change, NoRisk, needs, []string{"Node " + b.node(h)})
}

// versions says what a host runs and what is wanted.
func (b *builder) versions(id string) string {
	want := b.in.Want.KubernetesVersion
	seen := b.in.Is.Hosts[id]
	var parts []string
	if api := seen.APIServerVersion; api != "" && api != want {
		parts = append(parts, "API server "+api)
	}
	if kubelet := seen.Kubelet.Version; kubelet != want {
		if kubelet == "" {
			kubelet = "of unknown version"
		}
		parts = append(parts, "kubelet "+kubelet)
	}
	switch {
	case len(parts) == 0 && seen.Turn == want:
		return "its turn has begun and has not ended"
	case len(parts) == 0:
		return "roll-out forced"
	}
	return strings.Join(parts, ", ") + ", want " + want
}

// systemFollows plans that kube-proxy and cluster DNS follow, and the wait for it.
func (b *builder) systemFollows(d decide.Decision, after []string) []string {
	b.barrier = union(b.barrier, after)
	b.systemAddons(d)
	return []string{b.clusterStep(AwaitWorkloads, "await-system", "wait for "+strings.Join(d.System, ", "), "applied", Change, []string{b.id(SystemAddons, b.host(d.Leader))}, nil)}
}

// systemAddons plans that kube-proxy and cluster DNS follow the control plane's version.
func (b *builder) systemAddons(d decide.Decision) {
	if len(d.System) == 0 {
		return
	}
	h := b.host(d.Leader)
	id := b.step(h, SystemAddons, "apply "+strings.Join(d.System, ", "), "pods run another image than the wanted one", Change, NoRisk, nil, []string{"kube-proxy, cluster DNS"})
	b.addons = append(b.addons, id)
	b.is.API.Pods = slices.Clone(b.is.API.Pods)
	for i := range b.is.API.Pods {
		p := &b.is.API.Pods[i]
		if slices.Contains(d.System, p.App) {
			p.Image = b.in.System[p.App]
		}
	}
}

// predictUpgraded makes the host what it is after its turn.
func (b *builder) predictUpgraded(h desired.Host) {
	want := b.in.Want.KubernetesVersion
	b.predictMember(h) // one whose turn had begun may not have worked
	seen := b.is.Hosts[h.ID]
	seen.Kubelet.Version = want
	if h.Role == desired.ControlPlane {
		seen.APIServerVersion = want
		b.is.API.Version = want
	}
	seen.Digests, seen.Turn = b.in.Config[h.ID], ""
	b.is.Hosts[h.ID] = seen
	b.predictOpen(h)
}

// predictOpen makes the host's Node what it is after uncordon.
func (b *builder) predictOpen(h desired.Host) {
	for i := range b.is.API.Nodes {
		n := &b.is.API.Nodes[i]
		if n.Name != b.node(h) {
			continue
		}
		n.KubeletVersion, n.Ready = b.in.Want.KubernetesVersion, observed.Yes
		if n.Annotations[observed.CordonAnnotation] != "" {
			n.Unschedulable, n.Annotations = false, withKeys(n.Annotations, map[string]string{observed.CordonAnnotation + "-": ""})
		}
	}
}
