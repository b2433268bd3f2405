package condition

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// ClusterCA returns this cluster's CA hash. Hosts that finished joining decide: control-plane hosts with a complete
// marker of this cluster, and the host through which an API with this cluster's record answered. If there are none, the
// control-plane hosts of an unfinished installation decide: those that hold etcd data, else those that hold PKI. The
// hash is empty if no host has one, or if hosts of one rank disagree; then claims has them all.
func ClusterCA(want *desired.Cluster, is *observed.World) (hash string, claims []string) {
	for _, rank := range [...]func(h observed.Host, id string) bool{
		func(h observed.Host, id string) bool {
			return isOurs(h, want.Name) && h.Marker.Complete || is.API.Via == id && hasRecord(want, is)
		},
		func(h observed.Host, _ string) bool { return isOurs(h, want.Name) && h.EtcdData == observed.Yes },
		func(h observed.Host, _ string) bool { return isOurs(h, want.Name) && h.PKI == observed.Yes },
	} {
		for _, w := range want.ControlPlane {
			h := is.Hosts[w.ID]
			if h.Reach == observed.Reached && h.CAHash != "" && rank(h, w.ID) && !slices.Contains(claims, h.CAHash) {
				claims = append(claims, h.CAHash)
			}
		}
		switch len(claims) {
		case 0:
			continue
		case 1:
			return claims[0], nil
		}
		return "", claims
	}
	return "", nil
}

func isOurs(h observed.Host, cluster string) bool {
	return h.Marker != nil && h.Marker.Cluster == cluster
}

// hasRecord reports whether the API that answered has this cluster's record.
func hasRecord(want *desired.Cluster, is *observed.World) bool {
	return is.API.Reached == observed.Yes && is.API.Record != nil && is.API.Record.Cluster == want.Name
}
