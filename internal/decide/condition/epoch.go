package condition

import (
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// StaleEpoch reports whether the host holds data from before a recovery of the cluster, which has been recovered
// so often as the epoch says. Its etcd member belongs to another etcd cluster, whatever it answers, and must
// never serve again.
func StaleEpoch(is *observed.Host, epoch int) bool {
	m := is.Marker
	return m != nil && m.Complete && m.Epoch < epoch && (is.EtcdData != observed.No || len(is.Manifests) > 0)
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
