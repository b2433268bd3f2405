package v1beta2

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// carriedWithoutCloud is the tag of fields that are carried out for existing hosts only, not for clouds.
const carriedWithoutCloud = "without a cloud"

// carriedWithExternal is the tag of fields that are carried out only with cloudProvider.external.
const carriedWithExternal = "with external"

// ForExistingHosts returns the specification without the fields that are not carried out. An existing host cannot
// follow them.
func (p ProviderSpec) ForExistingHosts() ProviderSpec {
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("carried") == "no" {
			v.Field(i).SetZero()
		}
	}
	return p
}

// carriedByNothing is the tag of fields without effect, which need none: kubeone honours every value by doing nothing.
const carriedByNothing = "nothing to do"

// NotCarriedOut returns the paths of all ignored fields that are set, in the order of the types. A disabled feature is
// carried out by doing nothing.
func (c *KubeOneCluster) NotCarriedOut() []string {
	return c.ignored(func(reflect.StructField) bool { return true })
}

// SecurityNotCarriedOut returns the paths of set but ignored fields that would make the cluster safer. Without them,
// the cluster lacks a protection that its operator relies on.
func (c *KubeOneCluster) SecurityNotCarriedOut() []string {
	return c.ignored(func(f reflect.StructField) bool { return f.Tag.Get("security") == "yes" })
}

// ignored returns the paths of ignored fields that are set and that counts accepts.
func (c *KubeOneCluster) ignored(counts func(reflect.StructField) bool) []string {
	var paths []string
	walkFields(reflect.ValueOf(c).Elem(), "", func(path string, v reflect.Value, f reflect.StructField) bool {
		tag, ok := f.Tag.Lookup("carried")
		if !ok {
			return true
		}
		if tag == carriedWithoutCloud && c.CloudProvider.None != nil ||
			tag == carriedWithExternal && c.CloudProvider.External {
			return true
		}
		if tag == carriedByNothing {
			return false
		}
		if _, idle, found := strings.Cut(tag, "idle="); counts(f) && !isIdle(v) && (!found || plainText(v) != idle) {
			paths = append(paths, path)
		}
		return false
	})
	return paths
}

// isIdle reports whether a value is unset or disables its feature.
func isIdle(v reflect.Value) bool {
	if v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return true
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	for _, name := range []string{"Enable", "Deploy"} {
		if s := v.FieldByName(name); s.IsValid() {
			return plainText(s) == "false"
		}
	}
	return false
}

// plainText returns a scalar, or the scalar behind a pointer, as in the manifest; "" for a nil pointer.
func plainText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	return fmt.Sprint(v.Interface())
}

// walkFields calls visit for every field below a struct, with its path in the manifest. It descends into a field if
// visit returns true. Nil pointers have no fields.
func walkFields(v reflect.Value, path string, visit func(path string, v reflect.Value, f reflect.StructField) bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkFields(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkFields(v.Index(i), Item(path, i), visit)
		}
	case reflect.Map:
		walkMap(v, path, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Anonymous {
				walkFields(v.Field(i), path, visit)
				continue
			}
			at := Child(path, JSONName(f))
			if visit(at, v.Field(i), f) {
				walkFields(v.Field(i), at, visit)
			}
		}
	}
}

// walkMap visits a map's values in the order of its keys. Values of maps cannot be changed in place, so walkMap writes
// changes made by visit back.
func walkMap(v reflect.Value, path string, visit func(path string, v reflect.Value, f reflect.StructField) bool) {
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, key := range keys {
		if v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		walkFields(value, Child(path, key.String()), visit)
		v.SetMapIndex(key, value)
	}
}

// JSONName returns a field's name in the manifest.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
