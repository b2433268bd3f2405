// Package compare compares the desired states of two clusters, field by field.
package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
)

// Difference is a field that two manifests set to different values.
type Difference struct {
	// Path is the path of the field in a manifest. Items of a list have their names in brackets.
	Path string `json:"path"`
	// A and B are the values, as JSON values; nil if the field is not set.
	A any `json:"a"`
	B any `json:"b"`
	// Specific reports whether the field describes the hosts or the provider of a cluster. Two clusters with the same
	// configuration can differ in it.
	Specific bool `json:"specific"`
}

// Manifests returns the fields in which two effective manifests differ, by path. Defaults must be filled in. The order
// of items that have names, and of taints, has no meaning.
func Manifests(a, b []byte) ([]Difference, error) {
	left, err := decodeManifest(a)
	if err != nil {
		return nil, err
	}
	right, err := decodeManifest(b)
	if err != nil {
		return nil, err
	}
	return compareValues("", left, right), nil
}

func decodeManifest(manifest []byte) (any, error) {
	var out any
	if err := yaml.Unmarshal(manifest, &out); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return out, nil
}

// compareValues returns the differences at or below a path. A list's item that only one side has is one difference.
func compareValues(path string, a, b any) []Difference {
	left, right := fieldsOf(path, a), fieldsOf(path, b)
	isItem := strings.HasSuffix(path, "]")
	if left == nil && (a != nil || isItem) || right == nil && (b != nil || isItem) || left == nil && right == nil {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []Difference{{Path: path, A: a, B: b, Specific: isSpecific(path)}}
	}
	all := map[string]any{}
	maps.Copy(all, left)
	maps.Copy(all, right)
	var out []Difference
	for _, below := range slices.Sorted(maps.Keys(all)) {
		out = append(out, compareValues(below, left[below], right[below])...)
	}
	return out
}

// fieldsOf returns the fields of a value, or the named items of a list, by path. It returns nil if there are none.
func fieldsOf(path string, value any) map[string]any {
	out := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			out[v1beta2.Child(path, name)] = field
		}
	case []any:
		keys, ok := keysOf(v)
		if !ok {
			return nil
		}
		for i, item := range v {
			out[fmt.Sprintf("%s[%s]", path, keys[i])] = item
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// specificParts are the parts of a manifest that describe hosts or a provider.
func specificParts() []string {
	return []string{"name", "apiEndpoint", "controlPlane", "staticWorkers", "cloudProvider", "dynamicWorkers"}
}

func isSpecific(path string) bool {
	for _, part := range specificParts() {
		if rest, ok := strings.CutPrefix(path, part); ok && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
			return true
		}
	}
	return false
}

// keysOf returns the names of a list's items. It returns false if they are not structs with different names.
func keysOf(list []any) ([]string, bool) {
	var out []string
	for _, item := range list {
		fields, ok := item.(map[string]any)
		key := keyOf(fields)
		if !ok || key == "" || slices.Contains(out, key) {
			return nil, false
		}
		out = append(out, key)
	}
	return out, len(out) > 0
}

// keyOf returns the value of the first field that names an item.
func keyOf(item map[string]any) string {
	if key, effect := item["key"], item["effect"]; key != nil && effect != nil { // a taint
		return fmt.Sprintf("%v:%v", key, effect)
	}
	for _, name := range []string{"name", "releaseName", "hostname", "publicAddress", "chart"} {
		if text, ok := item[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
