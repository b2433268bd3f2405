package plan

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// RecoverOptions say what to restore a cluster from, and what the operator has confirmed.
type RecoverOptions struct {
	Copy Copy
	// Destroyed are control-plane hosts (IDs), and etcd members without a host (names), that the operator confirms to
	// be destroyed permanently.
	Destroyed []string
	On        string // ID of the host to restore on; "" chooses one
	// Progress is what the etcd data of hosts says, by host ID, if it is known.
	Progress map[string]Progress
}

// Progress is how far a host's etcd data has got, and what members it lists.
type Progress struct {
	Revision int64 // how far the member had got; 0 if unknown
	// AtLeast says that the member did not run, and Revision is that of its database on disk. Its log may have more.
	AtLeast bool
	// Members are the members in its database, each once. The list is as old as the data, and may include members that
	// left in an earlier epoch of the cluster.
	Members []observed.Member
	// Searched says that the whole database was searched for them.
	Searched bool
}

func (p Progress) isKnown() bool { return p.Revision > 0 }

// unflushed is how many revisions etcd's log may have that its database on disk lacks: etcd writes the database after
// 10,000 operations at most. Source: etcd's --backend-batch-limit.
const unflushed = 10_000

// mayReach returns the latest revision that a member may have.
func (p Progress) mayReach() int64 {
	if p.AtLeast {
		return p.Revision + unflushed
	}
	return p.Revision
}

// Copy is a verified copy of a cluster's data. Values that are missing in its source are zero.
type Copy struct {
	From   step.Source
	SHA256 string // hex, of the snapshot; "" for SurvivingMember
	About  string // in words: when it was taken, its revision, how many keys

	Cluster           string // name
	CAHash            string // as observed.Host.CAHash
	KubernetesVersion string // without v
	Members           []observed.Member
	EncryptionPath    string
	Hardening         string // as desired.Cluster's; "" if unknown
	Epoch             int    // number of recoveries of the cluster
	Revision          int64  // of the last change in it
}

// revisionsOfALife is how much a recovery adds to etcd's revisions at least: those of epoch N begin at N times this.
const revisionsOfALife = 1_000_000_000

// recoveryEpoch returns the cluster's epoch after the recovery: later than any epoch in a host's marker, the copy or a
// revision.
func (b *builder) recoveryEpoch(o RecoverOptions) int {
	epoch := max(condition.EpochBegun(&b.in.Want, &b.in.Is), o.Copy.Epoch, int(o.Copy.Revision/revisionsOfALife))
	for _, p := range o.Progress {
		epoch = max(epoch, int(p.Revision/revisionsOfALife))
	}
	return epoch + 1
}

// Recover plans how to restore a cluster without etcd quorum from a copy. etcd is stopped on every control-plane host
// and restored on one of them; the others join it one at a time. It returns an error, and nothing must be done, while
// etcd has quorum, if the copy belongs to another cluster, or if a control-plane host may still be serving and can
// neither be stopped nor was confirmed to be destroyed.
func Recover(in decide.Input, o RecoverOptions) (Plan, error) {
	assessed := decide.AssessRecovery(in)
	b := newBuilder(in, "recover")
	if err := b.checkRecovery(assessed, o); err != nil {
		return Plan{}, err
	}
	target, err := b.recoverOn(o)
	if err != nil {
		return Plan{}, err
	}
	d := decide.Decision{Hosts: assessed.Hosts}
	b.planRecovery(target, o, d)
	b.finishPlan(d)
	return b.plan, nil
}

// planRecovery plans the steps of a recovery.
func (b *builder) planRecovery(target desired.Host, o RecoverOptions, d decide.Decision) {
	var needs []string
	for _, h := range b.in.Want.ControlPlane {
		if h.ID != target.ID && b.mayServe(h) {
			needs = append(needs, b.fenceHost(h))
		}
	}
	restore := b.restoreCluster(target, o, needs, d)
	for _, h := range b.hostsToRejoin(target) { // bare hosts are prepared meanwhile
		if b.isBare(h) {
			b.addPrepareSteps(h, d)
		}
	}
	b.barrier = []string{restore}
	b.dropNodes(target, o, d)
	for _, h := range b.hostsToRejoin(target) {
		b.addPrepareSteps(h, d)
		b.addHostJoinSteps(h, target, d)
	}
	for i := range b.plan.Steps {
		if in := &b.plan.Steps[i].Intent; in.Kind == step.DeleteNode {
			in.Params = nil // the host was probed, or confirmed to be destroyed; the copy may still say Ready
		}
	}
	b.nodeReady(target, restore)
	b.awaitWorkers(restore)
	b.init = restore
	b.recoverNotes(target, o)
}

// hostsToRejoin returns the control-plane hosts that join the restored cluster: all others that answered.
func (b *builder) hostsToRejoin(target desired.Host) []desired.Host {
	var out []desired.Host
	for _, h := range b.in.Want.ControlPlane {
		if h.ID != target.ID && b.in.Is.Hosts[h.ID].Reach == observed.Reached {
			out = append(out, h)
		}
	}
	return out
}

// mayServe reports whether the host may have something to stop or to move aside.
func (b *builder) mayServe(h desired.Host) bool {
	seen := b.in.Is.Hosts[h.ID]
	return seen.Reach == observed.Reached && !b.isBare(h) &&
		(seen.EtcdData != observed.No || hasData(seen) || len(seen.Manifests) > 0 || seen.Kubelet.Active)
}

// isBare reports whether the host has never been part of the cluster, or its installation has only begun.
func (b *builder) isBare(h desired.Host) bool {
	seen := b.in.Is.Hosts[h.ID]
	known := seen.KubeletConf == observed.No && seen.EtcdData == observed.No && seen.PKI == observed.No
	return known && len(seen.Manifests) == 0 &&
		(seen.Marker == nil || !seen.Marker.Complete && seen.Marker.Fenced == "")
}

// fenceHost plans that a host can never serve its present data again.
func (b *builder) fenceHost(h desired.Host) string {
	return b.onHost(h, Step{
		Intent: plainIntent(step.Fence), Action: Remove, Risk: Restarts,
		Title: "stop etcd and API server, move their data aside", Reason: "the cluster is restored on another host",
		Changes: []string{
			"kubelet, etcd, API server and controllers, which are stopped",
			"/etc/kubernetes and /var/lib/etcd, kept in /var/lib/kubeone-old",
		},
	})
}

// restoreCluster plans the restore on the target, after what it needs if the target is bare.
func (b *builder) restoreCluster(target desired.Host, o RecoverOptions, needs []string, d decide.Decision) string {
	seen, c, epoch := b.in.Is.Hosts[target.ID], o.Copy, b.recoveryEpoch(o)
	unfence := c.From == step.SurvivingMember && b.keepsEtcdData(target)
	if seen.PKI != observed.Yes && !unfence || !seen.Kubelet.Installed || !seen.Containerd.Installed {
		b.first = target.ID
		b.addPrepareSteps(target, d)
		needs = append(needs, b.stepID(step.Images, target))
	}
	reason := "etcd data from " + string(c.From)
	if c.About != "" {
		reason += ": " + c.About
	}
	changes := []string{
		"/var/lib/etcd, the old one kept in /var/lib/kubeone-old",
		fmt.Sprintf("etcd, a single member of a new etcd cluster, its revisions raised above %d",
			int64(epoch)*revisionsOfALife),
	}
	switch {
	case unfence:
		changes = append(changes, "/etc/kubernetes and the etcd data, moved back from /var/lib/kubeone-old")
	case seen.PKI != observed.Yes:
		changes = append(changes, "/etc/kubernetes, with the CAs and service-account keys from the backup")
	}
	return b.onHost(target, Step{
		Intent: step.With(step.RestoreParams{
			From:           c.From,
			Snapshot:       c.SHA256,
			Epoch:          epoch,
			EncryptionPath: c.EncryptionPath,
			Kubelet:        condition.ExpiredKubelet(&seen) != nil,
		}),
		Action: Replace, Risk: Restarts, Title: "restore etcd and start the control plane", Reason: reason,
		Needs: needs, Changes: changes,
	})
}

// Epoch returns the number of recoveries of the cluster after the plan has run.
func Epoch(p Plan, want desired.Cluster, is observed.World) int {
	for _, s := range p.Steps {
		if from, ok := s.Intent.Params.(step.RestoreParams); ok {
			return from.Epoch
		}
	}
	return condition.EpochBegun(&want, &is)
}

// dropNodes plans the deletion of Nodes without a machine: of hosts that were confirmed to be destroyed, of bare hosts
// that join under the same name, and of members of the copy that are not in the manifest.
func (b *builder) dropNodes(target desired.Host, o RecoverOptions, d decide.Decision) {
	for _, h := range b.in.Want.ControlPlane {
		switch {
		case h.ID == target.ID:
		case b.in.Is.Hosts[h.ID].Reach != observed.Reached:
			b.deleteNode(h, "its host was confirmed as destroyed", nil, step.Death{})
		case b.isBare(h):
			a := d.Hosts[h.ID]
			a.Replaced = true // the join deletes it first
			d.Hosts[h.ID] = a
		}
	}
	for _, m := range b.strangersOf(slices.Concat(o.Copy.Members, b.etcdMembers(o))) {
		b.deleteStrange(m.Name, "this control-plane host is no longer in the manifest", step.Death{})
	}
}

// hostOfMember returns the ID of the control-plane host in the manifest that has or had the member, by name or address.
// It returns "" if there is no such host.
func (b *builder) hostOfMember(m observed.Member) string {
	for _, h := range b.in.Want.ControlPlane {
		if m.Name == b.nodeName(h) || slices.ContainsFunc(m.PeerURLs,
			func(peer string) bool { return isPeerOf(peer, h) }) {
			return h.ID
		}
	}
	return ""
}

// awaitWorkers plans to wait until running workers that can be locked have found the API again. A worker whose name is
// refused has no Node to wait for.
func (b *builder) awaitWorkers(restore string) {
	for _, h := range b.in.Want.Workers {
		seen := b.in.Is.Hosts[h.ID]
		if m := seen.Marker; m == nil || !m.Complete || m.Machine != h.Machine || !seen.Kubelet.Active ||
			seen.Unwritable != "" || b.plan.Nodes[h.ID] == "" {
			continue
		}
		after := restore
		if old := condition.ExpiredKubelet(&seen); old != nil {
			after = b.regenerateParts(h, []string{condition.PartKubelet}, "expired: "+strings.Join(old, ", "),
				[]string{restore})
		}
		b.nodeReady(h, after)
	}
}

// discardedStaticPods returns the edited static pods of a control-plane host that a recovery writes again. On the
// target, a recovery keeps all but etcd's.
func (b *builder) discardedStaticPods(target desired.Host, seen *observed.Host) []string {
	goesOn := seen.ID == target.ID && seen.KubeletConf == observed.Yes &&
		slices.Contains(seen.Manifests, "kube-apiserver")
	return slices.DeleteFunc(decide.EditedPods(seen), func(pod string) bool {
		file, _, _ := strings.Cut(pod, " (")
		name := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml")
		return !slices.Contains(seen.Manifests, name) || goesOn && name != "etcd"
	})
}

// unreachedWorkers returns the names of the manifest's workers that could not be probed.
func (b *builder) unreachedWorkers() []string {
	var out []string
	for _, h := range b.in.Want.Workers {
		if h.Machine == "" && b.in.Is.Hosts[h.ID].Reach != observed.Reached {
			out = append(out, b.displayName(h))
		}
	}
	return out
}

// recoverNotes adds what the operator should know before approving the plan.
func (b *builder) recoverNotes(target desired.Host, o RecoverOptions) {
	note := func(format string, args ...any) { b.plan.Notes = append(b.plan.Notes, fmt.Sprintf(format, args...)) }
	switch o.Copy.From {
	case step.SurvivingMember:
		note("the restored cluster contains only the data on %s; changes that only the lost members had committed are lost",
			b.displayName(target))
		for _, h := range b.maybeNewer(target, o) {
			note("%s may have newer data: %s", b.displayName(h), b.progressOf(h, o))
		}
	case step.BareSnapshot:
		note("what was written after the snapshot is lost")
		note("a bare snapshot is not signed, so all of its content is trusted, including permissions and Secrets")
		if !b.sameCA(o.Copy) {
			note("the snapshot does not name a cluster; only its etcd members show that it belongs to this cluster")
		}
	case step.FullBackup:
		note("what was written after the backup is lost")
	}
	if !b.membersKnown(o) {
		note("the former etcd members are not known; make sure that no member outside the manifest is serving")
	}
	if unasked := b.unreachedWorkers(); len(unasked) > 0 {
		note("%s could not be checked for etcd data or an API server; make sure that none of them ever belonged to the "+
			"control plane", strings.Join(unasked, ", "))
	}
	for _, h := range b.in.Want.ControlPlane {
		seen := b.in.Is.Hosts[h.ID]
		if pods := b.discardedStaticPods(target, &seen); len(pods) > 0 {
			note("edits to static pods on %s are not carried over; they are kept there in /var/lib/kubeone-old: %s",
				b.displayName(h), strings.Join(pods, "; "))
		}
		if seen.Reach != observed.Reached {
			note("%s was confirmed as destroyed: put its replacement into the manifest and run kubeone apply; if the host "+
				"comes back, apply moves its data aside", b.displayName(h))
		}
	}
}
