package step

import (
	"kubeone/internal/model/desired"
)

// Kinds that let hosts join a cluster.
const (
	CopyPKI     Kind = "pki"
	JoinPrepare Kind = "join-prepare"
	JoinEtcd    Kind = "join-etcd"
	JoinFinish  Kind = "join-finish"
	JoinWorker  Kind = "join-worker"
)

var joinSecrets = []Secret{TokenSecret, DiscoverySecret}

// CopyPKIParams say from which host the PKI comes.
type CopyPKIParams struct {
	Peer string `json:"peer,omitempty"` // host ID
}

// Kind returns CopyPKI.
func (CopyPKIParams) Kind() Kind { return CopyPKI }

func copyPKIRow() row {
	return row{
		kind: CopyPKI, about: "copies CAs, service-account and encryption keys from another control-plane host",
		place: OnHost, group: groupJoins, params: paramsOf[CopyPKIParams](),
		secrets: []Secret{PKISecret, EncryptionSecret},
		traits:  runsByHand, partOf: desired.Joining, effect: noEffect,
	}
}

func joinPrepareRow() row {
	return row{
		kind: JoinPrepare, about: "control plane: creates certificates and kubeconfigs, starts the kubelet",
		traits: runsByHand,
		place:  OnHost, group: groupJoins, secrets: joinSecrets,
		partOf: desired.Joining,
		effect: noEffect,
	}
}

func joinEtcdRow() row {
	return row{
		kind: JoinEtcd, about: "control plane: adds the etcd member as a learner and promotes it",
		traits: changesMembership | runsByHand,
		place:  OnHost, group: groupJoins, secrets: joinSecrets,
		partOf: desired.Joining,
		effect: func(w *World, h desired.Host, _ Intent) { w.makeVoter(h) },
	}
}

func joinFinishRow() row {
	return row{
		kind: JoinFinish, about: "control plane: starts API server and controllers, marks the Node as control plane",
		traits: writesStaticPods | joinsCluster | runsByHand | coreOfActivity,
		place:  OnHost, group: groupJoins, event: "KubeOneJoined", secrets: joinSecrets,
		partOf: desired.Joining, effect: afterJoin,
	}
}

func joinWorkerRow() row {
	return row{
		kind: JoinWorker, about: "joins a worker",
		traits: joinsCluster | runsByHand | coreOfActivity,
		place:  OnHost, concerns: ItsHost, group: groupJoins, event: "KubeOneJoined", secrets: joinSecrets,
		partOf: desired.Joining, effect: afterJoin,
	}
}
