package ssa

import (
	"bytes"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// hasApplied reports whether an apply of the object by the manager would certainly change nothing. That is so if the
// manager owns exactly the fields of the object, and they have the same values in the live object. If it returns false,
// only a dry run can tell: the API server may write a value in another form, or set a default.
func hasApplied(live, object *unstructured.Unstructured, manager string) bool {
	owned := ownedFields(live, manager, object.GetAPIVersion())
	return owned != nil && sameFields(withoutIdentity(object), live.Object, owned)
}

// ownedFields returns the fields that the manager owns by server-side apply in that version of the API, and nil if this
// is not clear.
func ownedFields(live *unstructured.Unstructured, manager, apiVersion string) *fieldpath.Set {
	var owned *fieldpath.Set
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		if owned != nil || entry.APIVersion != apiVersion || entry.FieldsV1 == nil {
			return nil
		}
		owned = &fieldpath.Set{}
		if owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			return nil
		}
	}
	return owned
}

// withoutIdentity returns the content of an object without the fields that no manager owns.
func withoutIdentity(o *unstructured.Unstructured) map[string]any {
	content := maps.Clone(o.Object)
	delete(content, "apiVersion")
	delete(content, "kind")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		content["metadata"] = metadata
		if len(metadata) == 0 {
			delete(content, "metadata")
		}
	}
	return content
}

// sameFields reports whether the fields of the wanted value are the owned ones, and have the same values in the live
// value. A field without fields of its own is compared as a whole.
func sameFields(want, live any, owned *fieldpath.Set) bool {
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && sameMap(want, live, owned)
	case []any:
		live, ok := live.([]any)
		return ok && sameList(want, live, owned)
	}
	return false
}

func sameMap(want, live map[string]any, owned *fieldpath.Set) bool {
	elements := elementsOf(owned)
	if len(elements) != len(want) {
		return false
	}
	for _, e := range elements {
		if e.FieldName == nil {
			return false
		}
		wanted, isWanted := want[*e.FieldName]
		current, isLive := live[*e.FieldName]
		if !isWanted || !isLive || !sameElement(wanted, current, owned, e) {
			return false
		}
	}
	return true
}

// sameList compares lists whose items are identified by keys or by their values. Items of others may be in between.
func sameList(want, live []any, owned *fieldpath.Set) bool {
	elements := elementsOf(owned)
	if len(elements) != len(want) {
		return false
	}
	next := 0 // first live item that may be the next wanted one
	for _, wanted := range want {
		n := findOnly(elements, func(e fieldpath.PathElement) bool { return isIdentifiedBy(wanted, e) })
		if n < 0 {
			return false
		}
		at := findOnly(live, func(item any) bool { return isIdentifiedBy(item, elements[n]) })
		if at < next || !sameElement(wanted, live[at], owned, elements[n]) {
			return false
		}
		next = at + 1
	}
	return true
}

func sameElement(want, live any, owned *fieldpath.Set, e fieldpath.PathElement) bool {
	if fields, ok := owned.Children.Get(e); ok {
		return sameFields(want, live, fields)
	}
	return reflect.DeepEqual(want, live)
}

// isIdentifiedBy reports whether an item of a list has the key or value of the path element. A field of the key that
// has a default, such as the protocol of a port, may be missing.
func isIdentifiedBy(item any, e fieldpath.PathElement) bool {
	if e.Value != nil {
		return value.Equals(value.NewValueInterface(item), *e.Value)
	}
	fields, ok := item.(map[string]any)
	if !ok || e.Key == nil {
		return false
	}
	for _, key := range *e.Key {
		if field, has := fields[key.Name]; has && !value.Equals(value.NewValueInterface(field), key.Value) {
			return false
		}
	}
	return true
}

// elementsOf returns the path elements directly below a set.
func elementsOf(s *fieldpath.Set) []fieldpath.PathElement {
	var out []fieldpath.PathElement
	s.Members.Iterate(func(e fieldpath.PathElement) { out = append(out, e) })
	s.Children.Iterate(func(e fieldpath.PathElement) {
		if !s.Members.Has(e) {
			out = append(out, e)
		}
	})
	return out
}

// findOnly returns the index of the only item that fits; -1 if none fits, or several.
func findOnly[T any](items []T, fits func(T) bool) int {
	found := -1
	for i, item := range items {
		if !fits(item) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
