package drive

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons"
	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/inventory"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// ownAddons are the operator's own addons that a manifest can have, by number: the names of their objects, by addon. An
// object enters an addon, leaves it, and moves to another one. The first are none.
func ownAddons() []map[string][]string {
	return []map[string][]string{
		nil, {"shop": {"a", "b"}}, {"shop": {"a", "c"}}, {"shop": {"a"}, "stock": {"b"}}, {"stock": {"b", "c"}},
	}
}

// newOwnAddons returns the operator's own addons with that number, in the order of their names.
func newOwnAddons(n int) []addons.Addon {
	all := ownAddons()[n%len(ownAddons())]
	var out []addons.Addon
	for _, name := range slices.Sorted(maps.Keys(all)) {
		addon := addons.Addon{Name: name, Digest: strings.Join(all[name], "+"), Custom: true}
		for _, object := range all[name] {
			addon.Objects = append(addon.Objects, unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"namespace": "default", "name": object},
			}})
		}
		out = append(out, addon)
	}
	return out
}

// ownObjects returns the keys of the objects of the operator's own addons.
func (f *file) ownObjects() map[string]bool {
	out := map[string]bool{}
	for _, a := range f.own {
		for _, o := range a.Identities() {
			out[o.Key()] = true
		}
	}
	return out
}

// compareObjects notes which objects of the operator's own addons are missing in the cluster.
func (s *Simulation) compareObjects(f *file, api *observed.API) {
	r := s.World.EtcdCluster()
	if r == nil || api.Reached != observed.Yes {
		return
	}
	api.Compared = map[string]observed.Comparison{}
	for _, a := range f.own {
		var found observed.Comparison
		for _, o := range a.Identities() {
			if !r.Objects.Own.Live[o.Key()] {
				found.Differences = append(found.Differences, observed.Difference{Object: o.String(), Missing: true})
			}
		}
		api.Compared[a.Name] = found
	}
}

// authorOfAddon returns the step that applies or removes an addon.
func (o *operator) authorOfAddon(k step.Kind, addon string) world.Author {
	for _, s := range o.steps {
		if s.Intent.Kind == k && (step.ParamsOf[step.ApplyAddonParams](s.Intent).Addon == addon ||
			step.ParamsOf[step.RemoveAddonParams](s.Intent).Addon == addon) {
			return o.authorOf(s)
		}
	}
	return world.Author{Run: o.run}
}

// ApplyAddon makes the requests of inventory.Keeper, between which a run may end. For an addon of kubeone, it only
// needs the API. UpdateRecord records what was applied.
func (a *api) ApplyAddon(ctx context.Context, c inventory.Change) error {
	if c.Own {
		return a.needAPI(ctx, "apply")
	}
	var objects []observed.AddonObject
	for i := range c.Objects {
		objects = append(objects, resources.Identify(&c.Objects[i]))
	}
	by, gone := a.o.authorOfAddon(step.ApplyAddon, c.Addon), withoutObjects(c.Delete, objects)
	var left []observed.AddonObject
	return a.requestAll(ctx, "apply/"+c.Addon, func(w *world.World) {
		left = withoutObjects(w.EtcdCluster().Objects.Own.Inventories[c.Addon], objects)
		if a.o.sim.Off == PruneAll {
			gone = objects
		}
		w.SaveInventory(by, c.Addon, slices.Concat(objects, left))
	}, func(w *world.World) {
		w.CreateObjects(by, objects)
	}, func(w *world.World) {
		w.DeleteObjects(by, gone)
	}, func(w *world.World) {
		w.SaveInventory(by, c.Addon, slices.Concat(objects, withoutObjects(left, gone)))
	})
}

// RemoveAddon is like ApplyAddon.
func (a *api) RemoveAddon(ctx context.Context, addon string, objects []observed.AddonObject) error {
	by := a.o.authorOfAddon(step.RemoveAddon, addon)
	return a.requestAll(ctx, "remove/"+addon, func(w *world.World) {
		w.DeleteObjects(by, objects)
	}, func(w *world.World) {
		w.SaveInventory(by, addon, nil)
	})
}

// requestAll makes one request after another. Each is repeated until it is done.
func (a *api) requestAll(ctx context.Context, what string, requests ...func(*world.World)) error {
	for _, request := range requests {
		err := a.repeatUntilDone(ctx, what, func(w *world.World) (bool, error) {
			request(w)
			return w.Write(), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutDeletions returns the intent without the objects that it deletes.
func withoutDeletions(in step.Intent) step.Intent {
	switch p := in.Params.(type) {
	case step.ApplyAddonParams:
		p.Delete = nil
		in.Params = p
	case step.RemoveAddonParams:
		p.Delete = nil
		in.Params = p
	}
	return in
}

// withoutObjects returns the objects that are not among others.
func withoutObjects(objects, others []observed.AddonObject) []observed.AddonObject {
	return slices.DeleteFunc(slices.Clone(objects), func(o observed.AddonObject) bool {
		return slices.ContainsFunc(others, func(other observed.AddonObject) bool { return other.Key() == o.Key() })
	})
}

// addonsAsWanted checks that the cluster has the objects of the operator's own addons, and no others.
func (s *Simulation) addonsAsWanted(r *world.EtcdCluster) {
	if want := s.file.ownObjects(); !maps.Equal(want, r.Objects.Own.Live) {
		s.Checker.Break(safety.Converged, "the operator's own addons have the objects %q instead of %q",
			slices.Sorted(maps.Keys(r.Objects.Own.Live)), slices.Sorted(maps.Keys(want)))
	}
}
