package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// repair plans the gentlest thing that there is to do, and returns whether what follows can be predicted: units are started
// and what hosts lack is written again; when nothing of that sort is left, dead members leave etcd; and when there are
// none, hosts that lost their etcd data are taken aside, after which their members are dead ones.
func (b *builder) repair(d decide.Decision) bool {
	switch {
	case len(d.Restarts)+len(d.Rewrites) > 0:
		b.revive(d)
	case len(d.Removals) > 0:
		b.removeMembers(d.Removals)
	default:
		b.setAside(d)
	}
	if !b.answers() {
		b.plan.Again = "what else the cluster needs can be seen only when its API and etcd answer"
		return false
	}
	return true
}

// answers reports whether API and etcd answer before the plan runs: what they did not say then cannot be predicted.
func (b *builder) answers() bool {
	return b.in.Is.API.Reached == observed.Yes && b.in.Is.Etcd.Reached == observed.Yes
}

// revive starts units and writes again what hosts lack, one control-plane host at a time; all at once when etcd has no
// quorum, for then none comes up without the others.
func (b *builder) revive(d decide.Decision) {
	holds := b.is.Etcd.Reached == observed.Yes && quorum.Count(b.is.Etcd.Members).Holds()
	previous, barrier := b.barrier, []string(nil)
	for _, h := range b.in.Want.Hosts() {
		var id string
		switch reason := strings.Join(problem.Whats(d.Hosts[h.ID].Reasons), "; "); {
		case d.Restarts[h.ID] != nil:
			id = b.restart(h, d.Restarts[h.ID], reason, previous)
		case d.Rewrites[h.ID] != nil:
			id = b.rewrite(h, d.Rewrites[h.ID], reason, previous)
		default:
			continue
		}
		if h.Role == desired.ControlPlane && holds {
			previous = []string{id}
		}
		barrier = append(barrier, id)
		b.predictMember(h)
	}
	b.barrier = union(b.barrier, barrier)
}

func (b *builder) restart(h desired.Host, units []string, reason string, needs []string) string {
	id := b.step(h, RestartUnits, "restart "+strings.Join(units, " and "), reason, Change, Restarts, needs, units)
	b.intent(id, func(i *Intent) { i.Units = units })
	return id
}

// rewrite plans what a host lacks to be written again. A worker gets new credentials with a join token; a control-plane
// host has the CA.
func (b *builder) rewrite(h desired.Host, parts []string, reason string, needs []string) string {
	if h.Role == desired.Worker {
		needs = append(slices.Clone(needs), b.joinToken())
	}
	changes := make([]string, 0, len(parts)+1)
	for _, part := range parts {
		changes = append(changes, rewritten(part))
	}
	if i := b.member(h); i >= 0 && slices.Contains(parts, condition.PartCertificates) {
		if v := quorum.SafeToStop(b.is.Etcd.Members, b.is.Etcd.Members[i].ID); v.Outage {
			changes = append(changes, "outage: "+v.Why)
		}
	}
	id := b.step(h, Rewrite, "write again: "+strings.Join(parts, ", "), reason, Change, Restarts, needs, changes)
	b.intent(id, func(i *Intent) { i.Parts = parts })
	return id
}

// rewritten is what a reader finds changed when a part was written again.
func rewritten(part string) string {
	switch part {
	case condition.PartCertificates:
		return "certificates and kubeconfigs of the control plane, whose components start again"
	case condition.PartKubelet:
		return "/etc/kubernetes/kubelet.conf and the kubelet's client certificate"
	default:
		return "/etc/kubernetes/manifests/" + part + ".yaml"
	}
}

// removeMembers plans that dead members leave etcd, one after the other, the first after a snapshot. Each is confirmed to
// be dead once more when its turn comes.
func (b *builder) removeMembers(removals []decide.Removal) {
	for _, r := range removals {
		b.barrier = []string{b.removeMember(r, b.snapshot(r.Host))}
		b.is.Etcd.Members = slices.DeleteFunc(b.is.Etcd.Members, func(m observed.Member) bool { return m.ID == r.Member })
	}
}

func (b *builder) removeMember(r decide.Removal, needs []string) string {
	name := r.Name
	if name == "" {
		name = r.Member
	}
	title, changes := "remove dead member "+name+" from etcd", []string{"etcd member " + strings.TrimSpace(r.Name+" ("+r.Member+")")}
	var id string
	if r.Host == "" {
		id = b.clusterStep(RemoveEtcd, string(RemoveEtcd)+"/"+name, title, r.Why, Remove, needs, changes)
	} else {
		id = b.step(b.host(r.Host), RemoveEtcd, title, r.Why, Remove, NoRisk, needs, changes)
	}
	b.intent(id, func(i *Intent) { i.Member, i.Confirm, i.Peer = r.Member, !r.Learner, r.Host })
	return id
}

// snapshot plans a snapshot of etcd on a control-plane host whose member is well, once in a plan and not on the host that
// leaves, and returns its ID as needs; none where no such host answered.
func (b *builder) snapshot(leaves string) []string {
	for _, s := range b.plan.Steps {
		if s.Intent.Kind == Snapshot {
			return []string{s.ID}
		}
	}
	for _, h := range b.in.Want.ControlPlane {
		i := b.member(h)
		if h.ID == leaves || b.is.Hosts[h.ID].Reach != observed.Reached || b.is.Hosts[h.ID].EtcdHealth != observed.Yes || i < 0 || b.is.Etcd.Members[i].Healthy != observed.Yes {
			continue
		}
		return []string{b.step(h, Snapshot, "snapshot of etcd", "before a member leaves", Create, NoRisk, nil, []string{"/var/lib/kubeone/snapshots"})}
	}
	return nil
}

// setAside plans that hosts which lost their etcd data stop being members: what is left is kept, dated. Afterwards their
// members are dead ones, and they join like hosts whose join has not ended.
func (b *builder) setAside(d decide.Decision) {
	for _, id := range d.Asides {
		h := b.host(id)
		needs := append(b.snapshot(id), b.barrier...)
		step := b.step(h, SetAside, "stop the control plane, set etcd's remains aside", strings.Join(problem.Whats(d.Hosts[id].Reasons), "; "), Remove, Restarts, needs,
			[]string{"/var/lib/etcd and /etc/kubernetes/manifests, kept in /var/lib/kubeone-old"})
		b.barrier = []string{step}
		seen := b.is.Hosts[id]
		seen.Marker = &observed.Marker{Cluster: b.in.Want.Name, Role: string(h.Role)}
		seen.EtcdData, seen.EtcdLost, seen.Manifests = observed.No, "", nil
		seen.APIServer, seen.ControllerManager, seen.Scheduler, seen.EtcdHealth = observed.Unknown, observed.Unknown, observed.Unknown, observed.Unknown
		b.is.Hosts[id] = seen
	}
}

// clearNode plans that the Node of a host's predecessor goes before the host joins under its name, and returns its ID as
// needs; none where there is no such Node.
func (b *builder) clearNode(h desired.Host, a condition.Assessment) []string {
	if !a.Replaced || b.is.API.Reached != observed.Yes {
		return nil
	}
	if _, found := b.findNode(h); !found {
		return nil
	}
	id := b.deleteNode(h, "its host was replaced", nil)
	b.intent(id, func(i *Intent) { i.Confirm = true })
	return []string{id}
}

// staleNodes plans that control-plane Nodes which are nobody's go.
func (b *builder) staleNodes(names []string) {
	for _, name := range names {
		id := b.clusterStep(DeleteNode, string(DeleteNode)+"/"+name, "delete Node "+name, "its host has left the cluster", Remove, nil, []string{"Node " + name})
		b.intent(id, func(i *Intent) { i.NodeName, i.Confirm = name, true })
		b.predictNodeGone(name)
	}
}

// predictNodeGone takes a Node out of the predicted world.
func (b *builder) predictNodeGone(name string) {
	b.is.API.Nodes = slices.DeleteFunc(b.is.API.Nodes, func(n observed.Node) bool { return n.Name == name })
}
