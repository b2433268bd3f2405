package decide

import (
	"fmt"

	"kubeone/internal/observed"
)

// disaster is the procedure when etcd has no quorum and stopped units are not the reason: first what may bring it back
// by itself, then what saves the data, and only then the restore.
func (v *view) disaster() []Instruction {
	var steps []string
	if s := v.bringBack(); s != "" {
		steps = append(steps, s)
	}
	holders := func(s *seen) bool { return s.is.EtcdData == observed.Yes }
	data := names(v.controlPlane(), holders)
	if data == "" {
		steps = append(steps, v.withoutData()...)
	} else {
		steps = append(steps, v.withData(data, names(v.controlPlane(), func(s *seen) bool { return !holders(s) }))...)
	}
	return []Instruction{{Reason: "etcd has lost its quorum: " + v.etcd.tally.String(), Steps: steps}}
}

// bringBack names the hosts that may still hold living members, and how many of them are enough.
func (v *view) bringBack() string {
	ill := func(s *seen) bool {
		return (s.silent() || s.joined()) && s.is.EtcdData != observed.No && s.is.EtcdHealth != observed.Yes && v.vote(s) != observed.Yes
	}
	back := having(v.controlPlane(), ill)
	short := Quorum(v.etcd.tally.Voters) - v.etcd.tally.Alive
	if len(back) == 0 || len(back) < short {
		return ""
	}
	return fmt.Sprintf("Bring back %d of %s: start the machine, mend its network or disk, start its units. Then etcd has its quorum again, no data is lost, and kubeone apply does the rest. Only if that is impossible, go on.",
		short, names(v.controlPlane(), ill))
}

func (v *view) withData(data, others string) []string {
	steps := []string{
		"Delete no host, empty no /var/lib/etcd and run neither kubeadm reset nor kubeone reset on " + data + ": what they hold may be all there is.",
		"On " + data + ": systemctl stop kubelet, stop the etcd container with crictl, copy /var/lib/etcd to another machine, and then move it aside.",
		"Take the newest snapshot, or the copied member/snap/db of the host whose member was last the leader, and restore it on that one host: etcdutl snapshot restore FILE --data-dir /var/lib/etcd --name HOST --initial-cluster HOST=https://ADDRESS:2380 --initial-advertise-peer-urls https://ADDRESS:2380 (with --skip-hash-check for a copied db).",
		"Write the same --initial-cluster into /etc/kubernetes/manifests/etcd.yaml there, start its kubelet, and wait until kubectl get nodes answers.",
	}
	rest := "Run kubeone reset --host on every other control-plane host, one after the other, and then kubeone apply: each joins the restored cluster."
	if others != "" {
		rest = "Replace or reset the other control-plane hosts (" + others + "), one after the other, and run kubeone apply: each joins the restored cluster."
	}
	return append(steps, rest)
}

func (v *view) withoutData() []string {
	return []string{
		"No control-plane host that answered holds etcd data. Find the newest snapshot of etcd and the backup of /etc/kubernetes/pki.",
		"Put the PKI on " + v.in.Want.Leader().ID + ", restore the snapshot there (etcdutl snapshot restore), and run kubeadm init with --ignore-preflight-errors=DirAvailable--var-lib-etcd.",
		"Without a backup the cluster cannot be restored. If all that ran in it may be lost, run kubeone reset on every host and then kubeone apply.",
	}
}
