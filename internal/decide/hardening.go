package decide

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Hardening is how much the cluster is to be hardened: what the manifest says; else what the cluster was made with,
// which its record says once a run has come to its end, and before that, or where it cannot be read, the hosts of its
// control plane; else the baseline, where a new cluster is to be made. A cluster that was made when there was nothing
// to say stays as it is: "".
//
// A host that does not answer may be one of a cluster that is there: without all of them nothing is new. Said is
// whether anybody has said so: manifest, record or a host.
func Hardening(want desired.Cluster, is observed.World) (value string, said bool) {
	if want.Hardening != "" {
		return want.Hardening, true
	}
	noted, made, answered := notedHardening(want, is)
	if r := is.API.Record; r != nil && r.Cluster == want.Name && r.ManifestDigest != "" &&
		!r.IsUnreadable(observed.RecordHardening) {
		if r.Hardening == "" && noted != "" {
			return desired.HardeningNone, true // somebody has begun to harden it, and wants that no more
		}
		return r.Hardening, true
	}
	switch {
	case noted != "":
		return noted, true
	case made || !answered:
		return "", false
	}
	return desired.HardeningBaseline, false
}

// notedHardening is what the hosts of the control plane have noted, of which one may have been reconfigured and the
// next one not; whether one of them has joined; and whether all have answered.
func notedHardening(want desired.Cluster, is observed.World) (noted string, made, answered bool) {
	answered = len(want.ControlPlane) > 0
	for _, h := range want.ControlPlane {
		seen := is.Hosts[h.ID]
		if seen.Reach != observed.Reached {
			answered = false
			continue
		}
		if m := seen.Marker; m == nil || m.Cluster != want.Name || !m.Complete {
			continue
		}
		made = true
		if n := desired.HardeningNoted(seen.Digests); noted != desired.HardeningBaseline && n != "" {
			noted = n
		}
	}
	return noted, made, answered
}
