package condition

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// StaleEpoch reports whether the host holds data from before a recovery of the cluster, which has been recovered
// so often as the epoch says. Its etcd member belongs to another etcd cluster, whatever it answers, and must
// never serve again.
func StaleEpoch(is *observed.Host, epoch int) bool {
	m := is.Marker
	return m != nil && m.Complete && m.Epoch < epoch && (is.EtcdData != observed.No || len(is.Manifests) > 0)
}

// Epoch returns how often the cluster has been recovered, as its finished control-plane hosts have it.
func Epoch(want *desired.Cluster, is *observed.World) int {
	return latestEpoch(want, is, func(m *observed.Marker) bool { return m.Complete })
}

// EpochBegun returns the same with recoveries that have begun and not ended.
func EpochBegun(want *desired.Cluster, is *observed.World) int {
	return latestEpoch(want, is, func(*observed.Marker) bool { return true })
}

// latestEpoch returns the highest epoch of the markers of this cluster that count. A control-plane host whose SSH key
// nobody has approved has no say where another has: by a number alone it would make all others hold old data, and the
// number would be written onto hosts that join.
func latestEpoch(want *desired.Cluster, is *observed.World, counts func(*observed.Marker) bool) int {
	of := map[bool]int{} // by whether the key is approved
	for _, h := range want.ControlPlane {
		seen := is.Hosts[h.ID]
		if m := seen.Marker; m != nil && m.Cluster == want.Name && counts(m) {
			approved := seen.FirstContact == ""
			of[approved] = max(of[approved], m.Epoch)
		}
	}
	if epoch, known := of[true]; known {
		return epoch
	}
	return of[false]
}
