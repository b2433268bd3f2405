package step

import (
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"slices"
)

// Kinds that remove hosts from a cluster.
const (
	RemoveEtcd Kind = "remove-etcd"
	ResetHost  Kind = "reset"
	Purge      Kind = "purge"
	DeleteNode Kind = "delete-node"
)

// RemoveEtcdParams say which member leaves. With Confirm, probes over 30 seconds must find the member dead and its host
// silent.
type RemoveEtcdParams struct {
	Member string `json:"member,omitempty"` // its ID, hex
	// Learner says that the member is an abandoned learner. If it votes by then, it stays.
	Learner bool `json:"learner,omitempty"`
	Death
}

// Kind returns RemoveEtcd.
func (RemoveEtcdParams) Kind() Kind { return RemoveEtcd }

func removeEtcdRow() row {
	return row{
		kind: RemoveEtcd, about: "removes a member from etcd",
		traits: changesMembership | allOrNothing,
		place:  ThroughEtcd, group: groupRemovals, params: paramsOf[RemoveEtcdParams](),
		effect:   memberRemoved,
		disrupts: func(Intent) quorum.Disruption { return quorum.Leave },
	}
}

func memberRemoved(w *World, _ desired.Host, i Intent) {
	id := ParamsOf[RemoveEtcdParams](i).Member
	w.Is.Etcd.Members = slices.DeleteFunc(slices.Clone(w.Is.Etcd.Members), func(m observed.Member) bool {
		return m.ID == id
	})
}

// ResetHostParams are preconditions for wiping a host.
type ResetHostParams struct {
	MemberLeft bool `json:"memberLeft,omitempty"` // its member must have left etcd
}

// Kind returns ResetHost.
func (ResetHostParams) Kind() Kind { return ResetHost }

func resetHostRow() row {
	return row{
		kind: ResetHost, about: "resets the host so that it can be used again",
		traits: clearsHost | coreOfActivity,
		place:  OnHost, concerns: ItsHost, group: groupRemovals, params: paramsOf[ResetHostParams](),
		partOf: desired.Resetting,
		disrupts: func(i Intent) quorum.Disruption {
			if ParamsOf[ResetHostParams](i).MemberLeft {
				return quorum.Wipe
			}
			return quorum.NoDisruption // the whole cluster ends
		},
		effect: afterReset,
	}
}

// afterReset makes a host bare.
func afterReset(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	w.Is.Hosts[h.ID] = observed.Host{
		ID: seen.ID, Reach: seen.Reach, FirstContact: seen.FirstContact, OtherKeys: seen.OtherKeys,
		Hostname: seen.Hostname, MachineID: seen.MachineID, BootID: seen.BootID,
		OS: seen.OS, Arch: seen.Arch, Kernel: seen.Kernel, CPUs: seen.CPUs, MemoryMiB: seen.MemoryMiB,
		DiskMiB:   seen.DiskMiB,
		ClockSkew: seen.ClockSkew, Addresses: seen.Addresses, Tools: seen.Tools, Kept: seen.Kept,
		KubeletConf: observed.No, AdminConf: observed.No, PKI: observed.No, EtcdData: observed.No,
	}
}

// PurgeParams are preconditions for deleting what was kept.
type PurgeParams struct {
	Quorum bool `json:"quorum,omitempty"` // etcd must have a quorum: without it, what was kept may be needed
}

// Kind returns Purge.
func (PurgeParams) Kind() Kind { return Purge }

func purgeRow() row {
	return row{
		kind: Purge, about: "deletes the data that resets, repairs and recoveries have kept on a bare host",
		place: OnHost, concerns: ItsHost, group: groupRemovals, params: paramsOf[PurgeParams](),
		disrupts: func(i Intent) quorum.Disruption {
			if ParamsOf[PurgeParams](i).Quorum {
				return quorum.Purge
			}
			return quorum.NoDisruption // the whole cluster ends
		},
		effect: afterPurge,
	}
}

func afterPurge(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Kept = nil
	w.Is.Hosts[h.ID] = seen
}

// DeleteNodeParams say why a Node is deleted. With Confirm, the Node must not be Ready, and its host, if there is a
// Peer, must not respond to probes over 30 seconds.
type DeleteNodeParams struct{ Death }

// Kind returns DeleteNode.
func (DeleteNodeParams) Kind() Kind { return DeleteNode }

func deleteNodeRow() row {
	return row{
		kind: DeleteNode, about: "deletes the Node object",
		place: ThroughAPI, concerns: ItsHost, group: groupRemovals, params: paramsOf[DeleteNodeParams](),
		event: "KubeOneRemoved", effect: nodeDeleted,
	}
}

func nodeDeleted(w *World, _ desired.Host, i Intent) {
	isDeleted := func(n observed.Node) bool { return n.Name == i.NodeName }
	w.Is.API.Nodes = slices.DeleteFunc(slices.Clone(w.Is.API.Nodes), isDeleted)
}

// Kinds that copy etcd's data, and restore it.
const (
	Snapshot Kind = "snapshot"
	Fence    Kind = "fence"
	Restore  Kind = "restore"
)

func snapshotRow() row {
	return row{
		kind: Snapshot, about: "takes a verified snapshot of etcd, kept on the host",
		place: OnHost, group: groupSnapshots, halts: always, effect: noEffect,
	}
}

func fenceRow() row {
	return row{
		kind: Fence, about: "stops etcd and API server, and moves their data aside",
		place: OnHost, group: groupRecovery, event: "KubeOneFenced", effect: afterFence,
	}
}

func afterFence(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Marker = &observed.Marker{Cluster: w.Want.Name, Role: string(h.Role), Fenced: "planned"}
	seen.KubeletConf, seen.AdminConf, seen.PKI = observed.No, observed.No, observed.No
	seen.EtcdData, seen.Manifests = observed.No, nil
	seen.Kubelet.Active = false
	w.Is.Hosts[h.ID] = seen
}

// RestoreParams say what to restore a cluster's data from.
type RestoreParams struct {
	From Source `json:"from,omitempty"`
	// sha256 (hex) of the snapshot that is uploaded; "" for the member's own data
	Snapshot string `json:"snapshot,omitempty"`
	Epoch    int    `json:"epoch,omitempty"` // number of recoveries of the cluster, including this one
	// EncryptionPath is where the backup's configuration of encryption at rest belongs; "" if it has none.
	EncryptionPath string `json:"encryptionPath,omitempty"`
	// Kubelet says that the host's kubelet gets new credentials, because its own have expired.
	Kubelet bool `json:"kubelet,omitempty"`
}

// Kind returns Restore.
func (RestoreParams) Kind() Kind { return Restore }

func (p RestoreParams) scriptVariables() []Variable {
	kubelet := ""
	if p.Kubelet {
		kubelet = "yes"
	}
	return []Variable{
		Text("RECOVER_FROM", string(p.From)), Text("RECOVER_SNAPSHOT", p.Snapshot),
		Text("ENCRYPTION_PATH", p.EncryptionPath), Text("RECOVER_KUBELET", kubelet),
	}
}

// Source is a kind of copy of a cluster's data.
type Source string

// The sources.
const (
	SurvivingMember Source = "surviving-member" // the data of a control-plane host's own member
	BareSnapshot    Source = "snapshot"         // a snapshot of etcd, without the cluster's keys
	FullBackup      Source = "backup"           // a snapshot with the CAs and service-account keys
)

func restoreRow() row {
	return row{
		kind: Restore, about: "starts a new etcd cluster of one member from a copy of the data",
		traits: writesStaticPods | findsImages | createsControlPlane,
		place:  OnHost, group: groupRecovery, params: paramsOf[RestoreParams](), event: "KubeOneRestored",
		secrets: []Secret{BackupSecret}, effect: afterRestore,
	}
}

// afterRestore predicts a cluster with one control-plane host. Its Nodes are unknown before the restore; Nodes of the
// manifest's control-plane hosts are assumed to exist.
func afterRestore(w *World, h desired.Host, i Intent) {
	w.Epoch = ParamsOf[RestoreParams](i).Epoch
	w.Is.Etcd = observed.Etcd{Reached: observed.Yes}
	w.Is.API = observed.API{Reached: observed.Yes, AutoApproval: observed.Yes} // as the copy may have it
	for _, other := range w.Want.ControlPlane {
		w.Is.API.Nodes = append(w.Is.API.Nodes, observed.Node{Name: w.Names[other.ID], ControlPlane: true})
	}
	w.makeMember(h)
}
