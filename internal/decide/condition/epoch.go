package condition

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// StaleEpoch reports whether the host holds data from before the recovery of that epoch. Its etcd member belongs to
// another etcd cluster, whatever it answers, and must never serve again.
func StaleEpoch(is *observed.Host, epoch int) bool {
	m := is.Marker
	return m != nil && m.Complete && m.Epoch < epoch && (is.EtcdData != observed.No || len(is.Manifests) > 0)
}

// Epoch returns the number of the cluster's recoveries, as its finished control-plane hosts have it.
func Epoch(want *desired.Cluster, is *observed.World) int {
	return latestEpoch(want, is, func(m *observed.Marker) bool { return m.Complete })
}

// EpochBegun is like Epoch, but includes recoveries that have begun and not ended.
func EpochBegun(want *desired.Cluster, is *observed.World) int {
	return latestEpoch(want, is, func(*observed.Marker) bool { return true })
}

// latestEpoch returns the highest epoch in the markers that count. If a control-plane host with an approved SSH key has
// one, hosts without do not count: their number alone would make all other data old, and joining hosts would get it.
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
