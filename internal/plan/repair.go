package plan

import (
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
	"slices"
	"strings"
)

// planRepair plans the gentlest possible repair, and returns whether the next one can be predicted. First, units are
// started and missing files are written again. If nothing of that is needed, dead members leave etcd. If there are
// none, hosts without their etcd data are quarantined; their members are dead then.
func (b *builder) planRepair(d decide.Decision) bool {
	switch {
	case len(d.Renewals) > 0:
		return b.renewEnding(d)
	case len(d.Restarts)+len(d.Regenerations)+len(d.Restores) > 0:
		b.repairHosts(d)
	case len(d.Removals) > 0:
		b.removeMembers(d.Removals)
	default:
		b.quarantineHosts(d)
	}
	if !b.clusterAnswers() {
		b.plan.Again = "other needs of the cluster are known only once its API and etcd answer"
		return false
	}
	return true
}

// clusterAnswers reports whether API and etcd answered the probe. Otherwise the next repairs cannot be predicted.
func (b *builder) clusterAnswers() bool {
	return b.in.Is.API.Reached == observed.Yes && b.in.Is.Etcd.Reached == observed.Yes
}

// repairHosts plans to start units and write missing files, one control-plane host at a time. Without quorum it repairs
// all of them at once, because none can start without the others.
func (b *builder) repairHosts(d decide.Decision) {
	holds := b.world.Is.Etcd.Reached == observed.Yes && quorum.Count(b.world.Is.Etcd.Members).Holds()
	previous, barrier := b.barrier, []string(nil)
	for _, h := range b.in.Want.Hosts() {
		var id string
		switch reason := strings.Join(problem.Texts(d.Hosts[h.ID].Reasons), "; "); {
		case restoredLast(h, d):
			continue
		case d.Restores[h.ID] != nil:
			id = b.restoreFiles(h, d, previous)
		case d.Restarts[h.ID] != nil:
			id = b.restartUnits(h, d.Restarts[h.ID], reason, previous)
		case slices.Contains(d.Regenerations[h.ID], condition.PartEncryption):
			id = b.giveKeys(h, d.Regenerations[h.ID], reason, previous)
		case d.Regenerations[h.ID] != nil:
			id = b.regenerateParts(h, d.Regenerations[h.ID], reason, previous)
		default:
			continue
		}
		if h.Role == desired.ControlPlane && holds {
			previous = []string{id}
		}
		barrier = append(barrier, id)
	}
	b.barrier = set.Union(b.barrier, barrier)
	b.restoreOnWorkers(d)
}

func (b *builder) restartUnits(h desired.Host, units []string, reason string, needs []string) string {
	seen := b.world.Is.Hosts[h.ID]
	off := len(seen.Swaps) > 0 && !seen.SwapAllowed
	changes := slices.Clone(units)
	if off {
		changes = append(changes, swapChanges(seen)...)
	}
	return b.onHost(h, Step{
		Intent: step.With(step.RestartUnitsParams{Units: units, SwapOff: off}), Action: Change, Risk: Restarts,
		Title: "restart " + strings.Join(units, " and "), Reason: reason, Needs: needs, Changes: changes,
	})
}

// regenerateParts plans to regenerate what a host lacks. A worker gets new credentials with a join token; a
// control-plane host signs its own.
func (b *builder) regenerateParts(h desired.Host, parts []string, reason string, needs []string) string {
	if h.Role == desired.Worker {
		needs = append(slices.Clone(needs), b.ownTokens()...)
	}
	changes := make([]string, 0, len(parts)+1)
	for _, part := range parts {
		changes = append(changes, regeneratedPart(part))
	}
	if v := b.checkStop(h); v.Outage && slices.Contains(parts, condition.PartCertificates) {
		changes = append(changes, "outage: "+v.Why)
	}
	return b.onHost(h, Step{
		Intent: step.With(step.RegenerateParams{Parts: parts}), Action: Change, Risk: Restarts,
		Title: "regenerate " + strings.Join(parts, ", "), Reason: reason, Needs: needs, Changes: changes,
	})
}

// regeneratedPart returns what changes when a part is regenerated.
func regeneratedPart(part string) string {
	switch part {
	case condition.PartCertificates:
		return "control plane certificates and kubeconfigs; the components restart"
	case condition.PartKubelet:
		return "/etc/kubernetes/kubelet.conf and the kubelet's client certificate"
	case condition.PartServing:
		return "the kubelet's serving certificate"
	case condition.PartSettings:
		return "/var/lib/kubelet/config.yaml, as in the manifest"
	default:
		return "/etc/kubernetes/manifests/" + part + ".yaml"
	}
}

// removeMembers plans to remove dead members from etcd, one at a time, the first after a snapshot. Before each step, a
// run checks again that the member is dead.
func (b *builder) removeMembers(removals []decide.Removal) {
	for _, r := range removals {
		b.barrier = []string{b.removeMember(r, b.snapshotBeforeLeaving(r.Host))}
	}
}

func (b *builder) removeMember(r decide.Removal, needs []string) string {
	name := r.Name
	if name == "" {
		name = r.Member
	}
	s := Step{
		Intent: step.With(step.RemoveEtcdParams{
			Member: r.Member, Learner: r.Learner,
			Death: step.Death{Peer: r.Host, Confirm: !r.Learner},
		}),
		Action: Remove, Title: "remove dead member " + name + " from etcd", Reason: r.Why,
		Needs: needs, Changes: []string{"etcd member " + strings.TrimSpace(r.Name+" ("+r.Member+")")},
	}
	if r.Host == "" {
		return b.onCluster(string(step.RemoveEtcd)+"/"+name, s)
	}
	return b.onHost(b.hostByID(r.Host), s)
}

// snapshotBeforeLeaving plans one snapshot of etcd on a control-plane host with a healthy member, but not on the host
// that leaves. It returns its ID as needs; none if no such host answered.
func (b *builder) snapshotBeforeLeaving(leaves string) []string {
	for _, s := range b.plan.Steps {
		if s.Intent.Kind == step.Snapshot {
			return []string{s.ID}
		}
	}
	for _, h := range b.in.Want.ControlPlane {
		i := b.memberIndex(h)
		if h.ID == leaves || b.world.Is.Hosts[h.ID].Reach != observed.Reached ||
			b.world.Is.Hosts[h.ID].EtcdHealth != observed.Yes || i < 0 ||
			b.world.Is.Etcd.Members[i].Healthy != observed.Yes {
			continue
		}
		return []string{b.takeSnapshot(h, "before a member leaves", nil)}
	}
	return nil
}

// takeSnapshot plans a snapshot on the host and returns the step's ID.
func (b *builder) takeSnapshot(h desired.Host, reason string, needs []string) string {
	return b.onHost(h, Step{
		Intent: plainIntent(step.Snapshot), Action: Create, Title: "snapshot of etcd", Reason: reason,
		Needs: needs, Changes: []string{"/var/lib/kubeone/snapshots"},
	})
}

// quarantineHosts plans that hosts without their etcd data stop being members; the remains are kept, dated. Their
// members are dead then, and the hosts join like those with an incomplete join.
func (b *builder) quarantineHosts(d decide.Decision) {
	for _, id := range d.Quarantines {
		h := b.hostByID(id)
		needs := append(b.snapshotBeforeLeaving(id), b.barrier...)
		b.barrier = []string{b.onHost(h, Step{
			Intent: plainIntent(step.Quarantine), Action: Remove, Risk: Restarts,
			Title:   "stop the control plane, move the remaining etcd data aside",
			Reason:  strings.Join(problem.Texts(d.Hosts[id].Reasons), "; "),
			Needs:   needs,
			Changes: []string{"/var/lib/etcd and /etc/kubernetes/manifests, kept in /var/lib/kubeone-old"},
		})}
	}
}

// clearNode plans to delete the Node of a host's predecessor before the host joins under its name, and returns its ID
// as needs; none if there is no such Node.
func (b *builder) clearNode(h desired.Host, a condition.Assessment) []string {
	if !a.Replaced || b.world.Is.API.Reached != observed.Yes {
		return nil
	}
	if _, found := b.findNode(h); !found {
		return nil
	}
	return []string{b.deleteNode(h, "its host was replaced", nil, step.Death{Confirm: true})}
}

// staleNodes plans the deletion of control-plane Nodes without a host.
func (b *builder) staleNodes(names []string) {
	for _, name := range names {
		b.deleteStrange(name, "its host has left the cluster", step.Death{Confirm: true})
	}
}

// deleteStrange plans to delete a Node that belongs to no host in the manifest.
func (b *builder) deleteStrange(name, reason string, why step.Death) {
	intent := step.With(step.DeleteNodeParams{Death: why})
	intent.NodeName = name
	b.onCluster(string(step.DeleteNode)+"/"+name, Step{
		Intent: intent, Action: Remove, Title: "delete Node " + name, Reason: reason, Changes: []string{"Node " + name},
	})
}

// restoreFiles plans that edited files are restored, which also starts stopped units.
func (b *builder) restoreFiles(h desired.Host, d decide.Decision, needs []string) string {
	is := b.world.Is.Hosts[h.ID]
	var params step.RestoreFilesParams
	for _, path := range d.Restores[h.ID] {
		if slices.Contains(is.Restorable, path) && condition.IsRestored(path) {
			params.Files = append(params.Files, path)
		}
	}
	reasons, changes, risk := problem.Texts(d.Hosts[h.ID].Reasons), slices.Clone(params.Files), NoRisk
	if len(params.Files) > 0 {
		reasons = append(reasons, "edited or deleted: "+problem.List(params.Files))
	}
	var open []string
	for _, file := range is.Exposed {
		if slices.Contains(d.Restores[h.ID], file.Path) {
			params.Closed, open = append(params.Closed, file.Path), append(open, file.String())
			changes = append(changes, file.Path+" for root alone")
		}
	}
	if len(open) > 0 {
		reasons = append(reasons, "users other than root can read or change "+problem.List(open))
	}
	if units := set.Union(params.Units(), d.Restarts[h.ID]); len(units) > 0 {
		changes, risk = append(changes, problem.List(units)+" restarted, containers keep running"), Restarts
	}
	return b.onHost(h, Step{
		Intent: step.With(params), Action: Change, Risk: risk, Title: "restore edited files",
		Reason: strings.Join(reasons, "; "), Needs: needs, Changes: changes,
	})
}

// restoredLast reports whether the host is a healthy worker with edited files.
func restoredLast(h desired.Host, d decide.Decision) bool {
	return h.Role == desired.Worker && d.Restores[h.ID] != nil && d.Hosts[h.ID].Condition == condition.Healthy
}

// restoreOnWorkers plans to restore files on healthy workers, one at a time. No other step waits for that, so a
// worker's claims about its files cannot delay the plan.
func (b *builder) restoreOnWorkers(d decide.Decision) {
	previous := ""
	for _, h := range b.in.Want.Workers {
		if !restoredLast(h, d) {
			continue
		}
		id := b.restoreFiles(h, d, nil)
		if previous != "" {
			b.runAfter(id, previous)
		}
		previous = id
	}
}

// Snapshots plans a snapshot on every control-plane host that answers, belongs to the cluster and has etcd data, one at
// a time.
func Snapshots(in decide.Input) Plan {
	b := newBuilder(in, "snapshots")
	var previous []string
	for _, h := range in.Want.ControlPlane {
		seen := b.world.Is.Hosts[h.ID]
		switch {
		case seen.Reach != observed.Reached:
			b.plan.Notes = append(b.plan.Notes, b.names[h.ID]+" cannot be reached and takes no snapshot: "+seen.Problem)
		case seen.Marker == nil || seen.Marker.Cluster != in.Want.Name || seen.EtcdData != observed.Yes:
			b.plan.Notes = append(b.plan.Notes, b.names[h.ID]+" has no etcd data of this cluster and takes no snapshot")
		default:
			previous = []string{b.takeSnapshot(h, "asked for", previous)}
		}
	}
	return b.plan
}
