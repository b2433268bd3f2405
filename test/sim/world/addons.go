package world

import (
	"maps"
	"slices"

	"kubeone/internal/model/observed"
)

// AddonObjects are the objects of the operator's own addons, and their inventories.
type AddonObjects struct {
	Live        map[string]bool // by key
	Inventories map[string][]observed.AddonObject
}

func (o AddonObjects) clone() AddonObjects {
	return AddonObjects{Live: maps.Clone(o.Live), Inventories: maps.Clone(o.Inventories)}
}

// SaveInventory replaces the list of an addon's objects. Nil deletes it.
func (w *World) SaveInventory(by Author, addon string, objects []observed.AddonObject) {
	w.reportEffect(Effect{Verb: Applied, By: by})
	own := &w.EtcdCluster().Objects.Own
	if own.Inventories == nil {
		own.Inventories = map[string][]observed.AddonObject{}
	}
	if own.Inventories[addon] = objects; objects == nil {
		delete(own.Inventories, addon)
	}
}

// CreateObjects creates the objects that do not exist.
func (w *World) CreateObjects(by Author, objects []observed.AddonObject) {
	w.reportEffect(Effect{Verb: Applied, By: by})
	own := &w.EtcdCluster().Objects.Own
	if own.Live == nil {
		own.Live = map[string]bool{}
	}
	for _, o := range objects {
		own.Live[o.Key()] = true
	}
}

// DeleteObjects deletes the objects that exist.
func (w *World) DeleteObjects(by Author, objects []observed.AddonObject) {
	own := &w.EtcdCluster().Objects.Own
	for _, o := range objects {
		if own.Live[o.Key()] {
			w.reportEffect(Effect{Verb: ObjectDeleted, By: by, Old: o.Key()})
			delete(own.Live, o.Key())
		}
	}
}

// observeInventories returns the inventories of addons.
func (o AddonObjects) observeInventories() map[string]observed.Inventory {
	out := map[string]observed.Inventory{}
	for addon, objects := range o.Inventories {
		out[addon] = observed.Inventory{Objects: slices.Clone(objects)}
	}
	return out
}
