package decide

import (
	"slices"

	"kubeone/internal/model/observed"
)

// LeftObjects returns the objects of an addon in the cluster that are part of no desired addon, without foreign ones.
// Of these, kept are the objects whose deletion would delete more than the addon, unless the manifest asks to delete
// the addon.
func LeftObjects(in Input, api observed.API, name string) (deleted, kept []observed.AddonObject) {
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
