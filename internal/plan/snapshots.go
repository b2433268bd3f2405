package plan

import (
	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
)

// Snapshots plans a snapshot on every control-plane host that answers, is ours and has etcd's data, one
// after the other.
func Snapshots(in decide.Input) Plan {
	b := newBuilder(in, "snapshots")
	var previous []string
	for _, h := range in.Want.ControlPlane {
		seen := b.world.Is.Hosts[h.ID]
		switch {
		case seen.Reach != observed.Reached:
			b.plan.Notes = append(b.plan.Notes, b.names[h.ID]+" cannot be reached and takes no snapshot: "+seen.Problem)
		case seen.Marker == nil || seen.Marker.Cluster != in.Want.Name || seen.EtcdData != observed.Yes:
			b.plan.Notes = append(b.plan.Notes, b.names[h.ID]+" has no etcd data of this cluster and takes no snapshot")
		default:
			previous = []string{b.takeSnapshot(h, "asked for", previous)}
		}
	}
	return b.plan
}
