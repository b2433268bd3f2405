package decide

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Anyone who may write ConfigMaps can make a key of the cluster's record unreadable. Such a key counts as missing, but
// for what the lack of it would allow: then that work waits for the key.

// RepairableKeys are the keys of the record that a run writes again when they cannot be read. Only the record knows
// which addons a cluster has, and which Node is that of a host that does not answer.
func RepairableKeys(want desired.Cluster, is observed.World) []string {
	keys := []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordFormerEndpoints, observed.RecordHardening, observed.RecordHistory,
	}
	if !slices.ContainsFunc(want.Hosts(), func(h desired.Host) bool {
		return is.Hosts[h.ID].Reach != observed.Reached
	}) {
		keys = append(keys, observed.RecordNodes)
	}
	return keys
}

// mendsRecord reports whether some key cannot be read that a run writes again.
func (v *view) mendsRecord() bool {
	return v.in.Is.API.Record.IsUnreadable(RepairableKeys(v.in.Want, v.in.Is)...)
}

// addonsUnknown reports whether what the record says of applied addons cannot be read. Then none is applied or removed:
// one may stand in place of another that is there.
func (v *view) addonsUnknown() bool { return v.in.Is.API.Record.IsUnreadable(observed.RecordAddons) }

// unreadable warns of each key that cannot be read and does not stand among what is unfit.
func (v *view) unreadable(unfit []problem.Problem) []problem.Problem {
	r := v.in.Is.API.Record
	var out []problem.Problem
	for _, key := range []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordNodes, observed.RecordFormerEndpoints, observed.RecordHardening, observed.RecordHistory,
	} {
		if r.IsUnreadable(key) {
			out = append(out, problem.Problem{
				Code:       problem.RecordUnreadable,
				Parameters: problem.Parameters{"key": key, "problem": r.Unreadable[key]},
			})
		}
	}
	if v.addonsUnknown() && !problem.Has(unfit, problem.AddonsUnreadable) {
		out = append(out, v.unreadableAddons())
	}
	return out
}

func (v *view) unreadableAddons() problem.Problem {
	return problem.Problem{
		Code: problem.AddonsUnreadable, Parameters: problem.Parameters{
			"problem": v.in.Is.API.Record.Unreadable[observed.RecordAddons],
		},
	}
}

// takesNode is the problem of a host that is to join under the name of a Node that is there, while the record does not
// say whether that is the Node of a host in the same role that does not answer: the join would delete it.
func (v *view) takesNode(s *hostState) *problem.Problem {
	if !s.missing() || !v.in.Is.API.Record.IsUnreadable(observed.RecordNodes) ||
		!slices.ContainsFunc(v.in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == s.Node }) {
		return nil
	}
	silent := having(v.hosts, func(o *hostState) bool {
		return o.ID != s.ID && o.Role == s.Role && o.is.Reach != observed.Reached
	})
	if len(silent) == 0 {
		return nil
	}
	return &problem.Problem{
		Code: problem.NodeOwnerUnknown, Host: s.ID, Parameters: problem.Parameters{"node": s.Node, "hosts": silent},
	}
}
