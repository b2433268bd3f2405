package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
)

const maxParallel = 8 // objects read in parallel

// Keeper applies and removes addons. Only one run at a time may change the addons of a cluster.
type Keeper struct {
	Kubernetes kubernetes.Interface
	Applier    *ssa.Applier
}

// Change is what to do with an addon.
type Change struct {
	Addon   string
	Objects []unstructured.Unstructured // to apply
	// Own says that the objects are part of kubeone. It then takes over their fields from others even if an object
	// existed before.
	Own bool
	// Delete lists objects that are no longer part of the addon.
	Delete []observed.AddonObject
}

// ApplyAddon applies the objects of an addon and deletes those in Delete. An object that existed before the addon was
// applied is never deleted. If such an object has another value in one of the fields, ApplyAddon fails with an
// *apicall.Error of class Operator, unless another program or
// person has set resources.AddonLabel on the object to the name of the addon.
//
// The inventory is complete at every moment: it contains each object before the object is created, and until the object
// is deleted.
func (k Keeper) ApplyAddon(ctx context.Context, c Change) error {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, 3*apicall.OpTimeout)
	defer cancel()
	before, err := k.readInventory(ctx, c.Addon)
	if err != nil {
		return err
	}
	objects, err := k.findForeign(ctx, c, before.Objects)
	if err != nil {
		return err
	}
	gone := withoutKeys(c.Delete, objects)
	left := withoutKeys(before.Objects, objects)
	if err := k.saveInventory(ctx, c.Addon, append(objects[:len(objects):len(objects)], left...)); err != nil {
		return err
	}
	err = k.Applier.ApplyOver(ctx, c.Objects, func(i int) bool { return c.Own || !objects[i].Foreign })
	if err != nil {
		return explainConflict(err, c.Addon)
	}
	if err := k.deleteObjects(ctx, gone); err != nil {
		return err
	}
	kept := withoutKeys(left, gone)
	return k.saveInventory(ctx, c.Addon, append(objects, withoutForeign(kept)...))
}

// RemoveAddon deletes these objects of an addon, and its inventory.
func (k Keeper) RemoveAddon(ctx context.Context, addon string, objects []observed.AddonObject) error {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, 3*apicall.OpTimeout)
	defer cancel()
	if err := k.deleteObjects(ctx, objects); err != nil {
		return err
	}
	return k.deleteInventory(ctx, addon)
}

// findForeign returns the identities of the objects. Those that exist and were not created by the addon are foreign.
func (k Keeper) findForeign(ctx context.Context, c Change, before []observed.AddonObject) ([]observed.AddonObject,
	error) {
	known := map[string]observed.AddonObject{}
	for _, o := range before {
		known[o.Key()] = o
	}
	out := make([]observed.AddonObject, len(c.Objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for i := range c.Objects {
		out[i] = resources.Identify(&c.Objects[i])
		was, listed := known[out[i].Key()]
		if listed && !was.Foreign {
			continue
		}
		group.Go(func() error {
			live, err := k.Applier.Find(ctx, &c.Objects[i])
			out[i].Foreign = live != nil && (listed || !ssa.IsManaged(live)) && !isHandedOver(live, c.Addon)
			return err
		})
	}
	return out, group.Wait()
}

// isHandedOver reports whether another program or person has labelled the live object as part of the addon.
func isHandedOver(live *unstructured.Unstructured, addon string) bool {
	return live.GetLabels()[resources.AddonLabel] == addon &&
		slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager != apicall.FieldManager && setsLabel(f, resources.AddonLabel)
		})
}

func setsLabel(f metav1.ManagedFieldsEntry, label string) bool {
	if f.FieldsV1 == nil {
		return false
	}
	var fields map[string]any
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	_, found, err := unstructured.NestedFieldNoCopy(fields, "f:metadata", "f:labels", "f:"+label)
	return found && err == nil
}

// deleteObjects deletes the objects in reverse order, except those that others have created.
func (k Keeper) deleteObjects(ctx context.Context, objects []observed.AddonObject) error {
	for i := len(objects) - 1; i >= 0; i-- {
		if objects[i].Foreign {
			continue
		}
		if err := k.Applier.DeleteIf(ctx, newReference(objects[i]), ssa.IsManaged); err != nil {
			return err
		}
	}
	return nil
}

func withoutForeign(objects []observed.AddonObject) []observed.AddonObject {
	var out []observed.AddonObject
	for _, o := range objects {
		if !o.Foreign {
			out = append(out, o)
		}
	}
	return out
}

// explainConflict adds to a conflict over a foreign object how the addon can take it over.
func explainConflict(err error, addon string) error {
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return err
	}
	return fmt.Errorf("%w; if the object belongs to the addon, label it %s=%s", err, resources.AddonLabel, addon)
}
