package fields

import (
	"reflect"
	"slices"
	"strings"

	"kubeone/api/kubeone/v1beta2"
)

// field is a field of the manifest without fields below it. Path is its name in the data:
// "controlPlane.hosts[].taints[].key", with * for any key of a map.
type field struct {
	path    string
	carried string // the tag: "" if kubeone carries the field out
}

// carriedOut reports whether kubeone carries the field out, whatever its value.
func (f field) carriedOut() bool {
	return f.carried == "" || f.carried == "without a cloud" || f.carried == "with external"
}

// allFields returns the fields of the API's types, in their order.
func allFields() []field {
	var out []field
	var walk func(typ reflect.Type, path, outer string)
	walk = func(typ reflect.Type, path, outer string) {
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous {
				continue
			}
			carried := f.Tag.Get("carried")
			if carried == "" || !(field{carried: outer}).carriedOut() {
				carried = outer // a tag applies to all fields below
			}
			at := strings.TrimPrefix(path+"."+v1beta2.JSONName(f), ".")
			below := f.Type
			for below.Kind() == reflect.Pointer {
				below = below.Elem()
			}
			switch below.Kind() {
			case reflect.Slice:
				if below = below.Elem(); below.Kind() == reflect.Struct {
					at += "[]"
				}
			case reflect.Map:
				if below = below.Elem(); below.Kind() == reflect.Struct {
					at += ".*"
				}
			}
			if below.Kind() == reflect.Struct && below.NumField() > 0 {
				walk(below, at, carried)
				continue
			}
			out = append(out, field{at, carried})
		}
	}
	walk(reflect.TypeFor[v1beta2.KubeOneCluster](), "", "")
	return out
}

// fieldPaths returns the fields that a test is needed for, or those that need none.
func fieldPaths(all []field, carriedOut bool) []string {
	var out []string
	for _, f := range all {
		if f.carriedOut() == carriedOut {
			out = append(out, f.path)
		}
	}
	return slices.Clip(out)
}
