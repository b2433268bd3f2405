package condition

import (
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// StaleEpoch says that the host holds the data of the cluster's life before a recovery; empty when it does not. Its etcd
// member belongs to another etcd cluster, whatever it answers, and must never serve again.
func StaleEpoch(is *observed.Host, cx HostContext) string {
	if m := is.Marker; m == nil || !m.Complete || m.Epoch >= cx.Epoch || is.EtcdData == observed.No && len(is.Manifests) == 0 {
		return ""
	}
	return "holds the data of the cluster's life before it was recovered: its etcd is another one"
}

// Epoch is how often the cluster has been recovered, as its finished control-plane hosts have it.
func Epoch(want *desired.Cluster, is *observed.World) int {
	epoch := 0
	for _, h := range want.ControlPlane {
		if m := is.Hosts[h.ID].Marker; m != nil && m.Complete && m.Cluster == want.Name {
			epoch = max(epoch, m.Epoch)
		}
	}
	return epoch
}
