package decide

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// DefaultAddons returns the cluster with those of desired.DefaultAddons that it is to have. If the manifest does not
// say whether it wants one, a cluster that has it keeps it, and a new cluster gets it. A cluster is new until a run has
// saved the manifest in its record, so that an interrupted installation gets it, too. A newer version of kubeone
// therefore adds none to an existing cluster.
//
// Without an answer of the API, a cluster is new only if all control-plane hosts answer and none has joined. Whole says
// that all hosts were observed; otherwise no cluster is new.
func DefaultAddons(want desired.Cluster, is observed.World, whole bool) desired.Cluster {
	for _, name := range desired.DefaultAddons() {
		if want.LacksDefaultAddon(name) && want.DefaultAddon(name) == nil &&
			(is.API.Addons[name] != "" || whole && isNew(want, is)) {
			want = want.WithDefaultAddon(name)
		}
	}
	return want
}

// KnowsDefaultAddons reports whether the API said which addons the cluster has. Otherwise a cluster may have one that
// the manifest does not mention.
func KnowsDefaultAddons(is observed.World) bool {
	return is.API.Reached == observed.Yes && !is.API.Record.IsUnreadable(observed.RecordAddons)
}

// isNew reports whether no run has set up the whole cluster yet.
func isNew(want desired.Cluster, is observed.World) bool {
	if is.API.Reached == observed.Yes {
		r := is.API.Record
		return r == nil || r.ManifestDigest == "" && !r.IsUnreadable(observed.RecordManifestDigest, observed.RecordAddons)
	}
	_, made, answered := notedHardening(want, is)
	return answered && !made
}

// LeftObjects returns the objects of an addon in the cluster that are part of no desired addon, without foreign ones.
// Of these, kept are the objects whose deletion would delete more than the addon, unless the manifest asks to delete
// the addon.
func LeftObjects(in Input, api observed.API, name string) (deleted, kept []observed.AddonObject) {
	if _, known := in.AddonObjects[name]; !known && in.Addons[name] != "" && in.AddonObjects != nil {
		return nil, nil // it is not known which objects are left
	}
	desiredKeys := map[string]bool{}
	for other := range in.Addons {
		for _, o := range in.AddonObjects[other] {
			desiredKeys[o.Key()] = true
		}
	}
	for _, o := range appliedObjects(in, api, name) {
		switch {
		case desiredKeys[o.Key()] || o.Foreign:
		case o.HoldsOthers() && !slices.Contains(in.DeletedAddons, name):
			kept = append(kept, o)
		default:
			deleted = append(deleted, o)
		}
	}
	return deleted, kept
}

// appliedObjects returns the objects of an addon in the cluster. kubeone's own addons may have been applied before it
// kept inventories.
func appliedObjects(in Input, api observed.API, name string) []observed.AddonObject {
	if held := api.Inventories[name]; len(held.Objects) > 0 {
		return held.Objects
	}
	if api.Addons[name] != "" && in.Want.IsOwnAddon(name) {
		return in.AddonObjects[name]
	}
	return nil
}

// lacksInventory reports whether the inventory of a custom addon is missing, or lists objects that an interrupted apply
// has left and that the addon no longer contains.
func (v *view) lacksInventory(name string) bool {
	if !slices.Contains(v.in.CustomAddons, name) {
		return false
	}
	held, listed := v.in.Is.API.Inventories[name]
	deleted, _ := LeftObjects(*v.in, v.in.Is.API, name)
	return !listed || held.Problem == "" && len(deleted) > 0
}
