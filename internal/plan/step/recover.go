package step

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The kinds that keep a copy of etcd's data, and begin anew from one.
const (
	Snapshot Kind = "snapshot"
	Fence    Kind = "fence"
	Restore  Kind = "restore"
)

func snapshotRow() row {
	return row{
		kind: Snapshot, about: "a verified snapshot of etcd, kept on the host",
		place: OnHost, group: groupSnapshots, halts: always, effect: unchanged,
	}
}

func fenceRow() row {
	return row{
		kind: Fence, about: "etcd and API server stopped, their data moved aside",
		place: OnHost, group: groupRecovery, event: "KubeOneFenced", effect: fenced,
	}
}

func fenced(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Marker = &observed.Marker{Cluster: w.Want.Name, Role: string(h.Role), Fenced: "planned"}
	seen.KubeletConf, seen.AdminConf, seen.PKI = observed.No, observed.No, observed.No
	seen.EtcdData, seen.Manifests = observed.No, nil
	seen.Kubelet.Active = false
	w.Is.Hosts[h.ID] = seen
}

// RestoreParams are what a cluster's data is restored from.
type RestoreParams struct {
	From Source `json:"from,omitempty"`
	// sha256 (hex) of the snapshot that is uploaded; "" for the member's own data
	Snapshot string `json:"snapshot,omitempty"`
	Epoch    int    `json:"epoch,omitempty"` // how often the cluster has been recovered, this time included
	// EncryptionPath is where the backup's configuration of encryption at rest belongs; "" where it has none.
	EncryptionPath string `json:"encryptionPath,omitempty"`
	// Kubelet says that the host's kubelet gets new credentials too: those that it has have expired.
	Kubelet bool `json:"kubelet,omitempty"`
}

// Kind is Restore.
func (RestoreParams) Kind() Kind { return Restore }

func (p RestoreParams) variables() []Variable {
	kubelet := ""
	if p.Kubelet {
		kubelet = "yes"
	}
	return []Variable{
		Text("RECOVER_FROM", string(p.From)), Text("RECOVER_SNAPSHOT", p.Snapshot),
		Text("ENCRYPTION_PATH", p.EncryptionPath), Text("RECOVER_KUBELET", kubelet),
	}
}

// Source is a sort of copy of a cluster's data.
type Source string

// The sources.
const (
	SurvivingMember Source = "surviving-member" // what a control-plane host's own member has
	BareSnapshot    Source = "snapshot"         // a snapshot of etcd, without the cluster's keys
	FullBackup      Source = "backup"           // a snapshot with the CAs and service-account keys
)

func restoreRow() row {
	return row{
		kind: Restore, about: "etcd begins anew from a copy of its data, as a cluster of one",
		traits: writesStaticPods | findsImages | createsControlPlane,
		place:  OnHost, group: groupRecovery, params: paramsOf[RestoreParams](), event: "KubeOneRestored",
		secrets: []Secret{BackupSecret}, effect: restored,
	}
}

// restored makes the world one of a cluster with one control-plane host. Its Nodes are not known before it runs: those
// of the manifest's control-plane hosts are taken to be there.
func restored(w *World, h desired.Host, i Intent) {
	w.Epoch = ParamsOf[RestoreParams](i).Epoch
	w.Is.Etcd = observed.Etcd{Reached: observed.Yes}
	w.Is.API = observed.API{Reached: observed.Yes, AutoApproval: observed.Yes} // as the copy may have it
	for _, other := range w.Want.ControlPlane {
		w.Is.API.Nodes = append(w.Is.API.Nodes, observed.Node{Name: w.Names[other.ID], ControlPlane: true})
	}
	w.member(h)
}
