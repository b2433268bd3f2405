package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/skew"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// upgradeHosts plans how hosts get to the desired version. Steps without disruption come first: binaries and images on
// every host, and a snapshot of etcd. Then follow the control plane host by host, kube-proxy and cluster DNS, and the
// workers in waves. A kube-proxy that is being replaced, or has just lost its API server, sends requests to pods that a
// drain has ended. An upgrade of a host is check, drain, upgrade, uncordon. Hosts that an earlier run left cordoned are
// uncordoned first.
func (b *builder) upgradeHosts(d decide.Decision) bool {
	b.uncordonLeft(d)
	missing := b.missingAddons()
	b.applyAddons(missing)
	network := b.applyNetworkRelease(b.missingNetwork())
	b.addons = append(b.addons, b.applyReleases(b.missingManagers())...)
	fetched := b.fetchAll(d)
	control, workers := b.splitByRole(d.Upgrades)
	control, workers = b.interruptedFirst(control), b.interruptedFirst(workers)
	last := b.upgradeControlPlane(d, control, fetched)
	if last == nil && len(control) > 0 {
		return false // blocked
	}
	if len(control) == 0 {
		last = fetched
	}
	if len(d.Settings) > 0 {
		b.barrier = set.Union(b.barrier, last)
		b.systemSettings(d)
		last = b.settings
	}
	if len(d.System) > 0 {
		last = b.systemFollows(d, last)
	}
	b.upgradeWorkers(d, workers, last)
	b.barrier = set.Union(b.barrier, last) // addons and joins follow the control plane's version
	if len(missing) > 0 || network {
		b.awaitWorkloads("addons were applied")
	}
	b.in.Options = b.in.After(fsm.Upgrade)
	return true
}

// uncordonLeft plans to uncordon Nodes that an interrupted run has left cordoned, if their hosts are in order. All
// later steps wait for that. A host that is upgraded again, because its hooks have not succeeded, is uncordoned after
// that.
func (b *builder) uncordonLeft(d decide.Decision) {
	var opened []string
	for _, id := range d.Uncordon {
		h := b.hostByID(id)
		again := b.hasHooksAfterUpgrade(h) && slices.Contains(d.Upgrades, id)
		if !b.hasStep(b.stepID(step.Uncordon, h)) && !again {
			reason := "an interrupted run left it cordoned"
			if n, _ := b.findNode(h); !n.Unschedulable {
				reason = "it is schedulable, but still has the mark of a run that had cordoned it"
			}
			opened = append(opened, b.uncordonNode(h, reason, nil, step.UncordonParams{Resume: true}))
		}
	}
	b.barrier = set.Union(b.barrier, opened)
}

func (b *builder) splitByRole(ids []string) (control, workers []desired.Host) {
	for _, id := range ids {
		if h := b.hostByID(id); h.Role == desired.ControlPlane {
			control = append(control, h)
		} else {
			workers = append(workers, h)
		}
	}
	return control, workers
}

// upgradeControlPlane plans an etcd snapshot, then the upgrade of the control-plane hosts, one at a time. It returns
// the steps that worker upgrades must wait for, or nil if there is nothing to upgrade or a host cannot be stopped
// safely.
func (b *builder) upgradeControlPlane(d decide.Decision, hosts []desired.Host, fetched []string) []string {
	if len(hosts) == 0 {
		return nil
	}
	snapshot := b.takeSnapshot(b.snapshotHost(hosts), "before anything is changed", fetched)
	// Hosts that join in this plan come first: only one host may be out of service at a time.
	previous := set.Union([]string{snapshot}, b.plannedSteps(step.JoinFinish))
	for _, h := range hosts {
		changes := []string{"API server, controller manager, scheduler " + b.in.Want.KubernetesVersion,
			"etcd, where its version differs", "certificates renewed", "kubelet"}
		for _, file := range b.in.Is.Hosts[h.ID].Edited {
			if condition.IsStaticPod(file) {
				changes = append(changes, file+" (manual edits are overwritten)")
			}
		}
		verdict := b.checkStop(h)
		if !verdict.Safe {
			b.blockStop(h, verdict)
			return nil
		}
		if verdict.Outage {
			changes = append(changes, "outage: "+verdict.Why)
		}
		previous = []string{
			b.upgradeNode(h, plainIntent(step.UpgradeControlPlane), append(changes, driftReasons(d, h)...), previous),
		}
	}
	return previous
}

// snapshotHost returns the host that takes the snapshot: the last one to be upgraded among those whose etcd serves, or
// any host if there is none. etcd may not serve on a host whose upgrade was interrupted.
func (b *builder) snapshotHost(hosts []desired.Host) desired.Host {
	for _, of := range [...][]desired.Host{hosts, b.in.Want.ControlPlane} {
		for _, h := range slices.Backward(of) {
			if b.world.Is.Hosts[h.ID].EtcdHealth != observed.No {
				return h
			}
		}
	}
	return hosts[len(hosts)-1]
}

// upgradeWorkers plans the workers in waves.
func (b *builder) upgradeWorkers(d decide.Decision, hosts []desired.Host, after []string) {
	b.inWaves(hosts, after, func(h desired.Host, after []string) (first, last string) {
		last = b.upgradeNode(h, b.upgradeWorker(h), append(b.workerChanges(h), driftReasons(d, h)...), after)
		return b.stepID(step.Check, h), last
	})
}

// inWaves plans something for each worker that the run may touch: one first, alone, if that is desired, and then as
// many at a time as may be unavailable. The function plans one worker after the given steps, and returns its first and
// last step.
func (b *builder) inWaves(
	hosts []desired.Host, after []string, of func(h desired.Host, after []string) (first, last string),
) {
	wide := b.in.Want.Upgrade.AtOnce(b.workersInLimit())
	canary := b.in.Want.Upgrade.Canary
	done := make([]string, 0, len(hosts))
	for n, h := range hosts {
		if canary && n == 1 {
			after = set.Union(after, done[:1]) // a skipped canary proves nothing
		}
		first, last := of(h, after)
		if before := predecessor(n, wide, canary); before > 0 || before == 0 && !canary {
			b.runAfter(first, done[before])
		}
		done = append(done, last)
	}
}

// interruptedFirst moves hosts to the front whose upgrade was begun and not ended: they are out of service already, and
// count among those that may be. If an upgrade ended after its drain, nothing on the host has changed.
func (b *builder) interruptedFirst(hosts []desired.Host) []desired.Host {
	rest := slices.DeleteFunc(slices.Clone(hosts), b.isInterrupted)
	return append(slices.DeleteFunc(slices.Clone(hosts), func(h desired.Host) bool { return !b.isInterrupted(h) }),
		rest...)
}

func (b *builder) isInterrupted(h desired.Host) bool {
	n, _ := b.findNode(h)
	return b.in.Is.Hosts[h.ID].Upgrading != "" || n.Unschedulable && n.Annotations[observed.CordonAnnotation] != ""
}

// driftReasons returns the configurations of the host that differ from the manifest. The upgrade updates them.
func driftReasons(d decide.Decision, h desired.Host) []string {
	names := otherDrift(d.Drift[h.ID])
	if len(names) == 0 {
		return nil
	}
	return []string{"configuration, which differs from the manifest: " + strings.Join(names, ", ")}
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

// runAfter makes a step wait for the end of another one, even if that fails.
func (b *builder) runAfter(id, other string) {
	for i := range b.plan.Steps {
		if b.plan.Steps[i].ID == id {
			b.plan.Steps[i].After = append(b.plan.Steps[i].After, other)
		}
	}
}

// predecessor returns the worker whose upgrade must end before the n-th one's begins, -1 for none: at most wide
// upgrades run at a time, and all wait for a canary.
func predecessor(n, wide int, canary bool) int {
	if canary && n > 0 {
		return max(0, n-wide)
	}
	return n - wide
}

// upgradeWorker returns the upgrade or downgrade of a worker.
func (b *builder) upgradeWorker(h desired.Host) step.Intent {
	seen, wanted := b.in.Is.Hosts[h.ID], b.in.Want.KubeletVersion(h)
	runs := ""
	if n, ok := b.findNode(h); ok {
		runs = n.KubeletVersion
	}
	down := skew.Newer(seen.Kubelet.Version, wanted) || skew.Newer(runs, wanted)
	return step.With(step.UpgradeWorkerParams{Down: down})
}

// workerChanges reports what an upgrade changes on a worker.
func (b *builder) workerChanges(h desired.Host) []string {
	if h.Versions == (desired.Versions{}) {
		return []string{"kubelet, container runtime"}
	}
	var changes []string
	seen := b.in.Is.Hosts[h.ID]
	change := func(what, have, wanted string) {
		if wanted != "" && have != wanted {
			changes = append(changes, fmt.Sprintf("%s %s -> %s", what, cmp.Or(have, "of unknown version"), wanted))
		}
	}
	change("kubelet", seen.Kubelet.Version, b.in.Want.KubeletVersion(h))
	change("containerd", seen.Containerd.Version, h.Versions.Containerd)
	if step.ParamsOf[step.UpgradeWorkerParams](b.upgradeWorker(h)).Down {
		changes = append(changes, "state of the CPU and memory managers removed: an older kubelet cannot read it")
	}
	return changes
}

// upgradeNode plans the upgrade of one host and returns its last step.
func (b *builder) upgradeNode(h desired.Host, upgrade step.Intent, changes, needs []string) string {
	reason := b.versionChange(h)
	check := b.onHost(h, Step{
		Intent: step.With(step.CheckParams{DiscardEdits: b.in.DiscardEdits && h.Role == desired.ControlPlane}),
		Action: Change, Title: "check before its upgrade",
		Reason: "binaries and images there, disk, etcd",
		Needs:  needs,
	})
	drain := b.drainNode(h, "cordon and drain", reason, []string{check}, true)
	title := "upgrade to " + b.in.Want.KubernetesVersion
	if h.Versions != (desired.Versions{}) {
		title = "change to " + b.versionsNamed(h)
	}
	up := b.onHost(h, Step{
		Intent: upgrade, Action: Change, Risk: Restarts, Title: title, Reason: reason, Needs: []string{drain},
		Changes: append(changes, packageChanges(b.in.Is.Hosts[h.ID])...),
	})
	return b.uncordonNode(h, "it is upgraded", []string{up}, step.UncordonParams{Containerd: h.Versions.Containerd})
}

func (b *builder) uncordonNode(h desired.Host, reason string, needs []string, after step.UncordonParams) string {
	return b.onHost(h, Step{
		Intent: step.With(after), Action: Change, Title: "wait until Ready, uncordon", Reason: reason,
		Needs: needs, Changes: []string{"Node " + b.nodeName(h)},
	})
}

// versionsNamed returns the host's desired versions as part of a sentence.
func (b *builder) versionsNamed(h desired.Host) string {
	var parts []string
	if v := h.Versions.Kubernetes; v != "" {
		parts = append(parts, "kubelet "+v)
	} else {
		parts = append(parts, "Kubernetes "+b.in.Want.KubernetesVersion)
	}
	if v := h.Versions.Containerd; v != "" {
		parts = append(parts, "containerd "+v)
	}
	return strings.Join(parts, ", ")
}

// versionChange returns the versions that a host runs and the desired ones, as part of a sentence.
func (b *builder) versionChange(h desired.Host) string {
	want := b.in.Want.KubeletVersion(h)
	seen := b.in.Is.Hosts[h.ID]
	var parts []string
	if api := seen.APIServerVersion; api != "" && api != want {
		parts = append(parts, "API server "+api)
	}
	if v := seen.ControllerManagerVersion; v != "" && v != want {
		parts = append(parts, "controller manager "+v)
	}
	if v := seen.SchedulerVersion; v != "" && v != want {
		parts = append(parts, "scheduler "+v)
	}
	if kubelet := seen.Kubelet.Version; kubelet != want {
		parts = append(parts, "kubelet "+cmp.Or(kubelet, "of unknown version"))
	}
	wanted := want
	if v := h.Versions.Containerd; v != "" && seen.Containerd.Version != v {
		parts = append(parts, "containerd "+cmp.Or(seen.Containerd.Version, "of unknown version"))
		wanted = b.versionsNamed(h)
	}
	switch {
	case len(parts) == 0 && seen.Upgrading == want:
		return "an earlier upgrade of this host was interrupted"
	case len(parts) == 0 && h.Role == desired.Worker && seen.Upgrading != "":
		return "an earlier change of this host, to " + seen.Upgrading + ", was interrupted"
	case len(parts) == 0 && b.in.ForceUpgrade:
		return "roll-out forced"
	case len(parts) == 0:
		return "the versions that its Node reports differ from the installed ones"
	}
	return strings.Join(parts, ", ") + ", want " + wanted
}

// systemFollows plans the upgrade of kube-proxy and cluster DNS, and the wait for it.
func (b *builder) systemFollows(d decide.Decision, after []string) []string {
	b.barrier = set.Union(b.barrier, after)
	b.systemAddons(d)
	return []string{b.onCluster("await-system", Step{
		Intent: plainIntent(step.AwaitWorkloads), Action: Change, Title: "wait for " + strings.Join(d.System, ", "),
		Reason: "applied",
		Needs:  []string{b.stepID(step.SystemAddons, b.hostByID(d.Leader))},
	})}
}

// systemAddons plans the upgrade of kube-proxy and cluster DNS to the control plane's version.
func (b *builder) systemAddons(d decide.Decision) {
	if len(d.System) == 0 {
		return
	}
	h, reason := b.hostByID(d.Leader), "pods run another image than the desired one"
	var wrong []observed.Difference
	for _, app := range d.System {
		wrong = append(wrong, b.world.Is.API.Compared[app].Differences...)
	}
	if len(wrong) > 0 {
		reason = listDifferences(wrong)
	}
	b.addons = append(b.addons, b.onHost(h, Step{
		Intent: plainIntent(step.SystemAddons), Action: Change, Title: "apply " + strings.Join(d.System, ", "),
		Reason: reason, Needs: set.Union(b.settings, b.renamed),
		Changes: []string{"kube-proxy, cluster DNS", "ConfigMap kube-system/kubeadm-config"},
	}))
}

// systemSettings plans that kube-proxy and cluster DNS get the manifest's settings, before kubeadm applies the same:
// kubeadm does not restart pods for settings.
func (b *builder) systemSettings(d decide.Decision) {
	if len(d.Settings) == 0 {
		return
	}
	var wrong []observed.Difference
	changes := make([]string, 0, len(d.Settings))
	for _, app := range d.Settings {
		for _, s := range b.world.Is.API.Compared[app].Settings {
			wrong, changes = append(wrong, s), append(changes, s.Object)
		}
	}
	if slices.Contains(d.Settings, "kube-proxy") {
		changes = append(changes, "kube-proxy pods, one Node after another")
	}
	id := string(step.SetSystem)
	if b.hasStep(id) { // again, after kubeadm has applied its own
		id += "/" + strings.Join(d.Settings, "+")
	}
	var needs []string
	if b.init != "" {
		needs = append(needs, b.init)
	}
	for _, s := range b.plan.Steps {
		if s.Intent.Kind == step.SystemAddons {
			needs = append(needs, s.ID)
		}
	}
	b.settings = []string{b.onCluster(id, Step{
		Intent: step.With(step.SetSystemParams{Apps: d.Settings}), Action: Change,
		Title: "set " + strings.Join(d.Settings, ", ") + " as the manifest says", Reason: listDifferences(wrong),
		Needs: needs, Changes: changes,
	})}
	b.addons = set.Union(b.addons, b.settings)
}
