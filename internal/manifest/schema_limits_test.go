package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"kubeone/api/kubeone/v1beta2"
)

// TestSchemaLimitsAreThoseOfTheProgram checks all fields of the schema. Schema and program must both refuse values just
// outside a limit or of another type, and both accept values just inside.
func TestSchemaLimitsAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	l := &limitTest{T: t, schema: compiled(t)}
	var root map[string]any
	decodeYAML(t, []byte(v1beta2.Schema()), &root)
	l.definitions, _ = root["definitions"].(map[string]any)
	l.visit(root, nil)
	if l.good < 60 || l.bad < 500 {
		t.Errorf("only %d good and %d bad values were tried", l.good, l.bad)
	}
}

type limitTest struct {
	*testing.T
	schema      *jsonschema.Schema
	definitions map[string]any
	good, bad   int
}

// spot is a step on the path to a value: its key or index, and the schema of its parent.
type spot struct {
	step any
	in   map[string]any
}

// visit tries the values at one place and continues below.
func (l *limitTest) visit(node map[string]any, way []spot) {
	node = l.whole(node)
	good, bad := atLimits(node)
	for _, value := range good {
		l.good++
		l.try(way, value, true)
	}
	for _, value := range bad {
		if l.bad++; len(way) > 0 {
			l.try(way, value, false)
		}
	}
	below := func(inner any, step any) {
		if inner, ok := inner.(map[string]any); ok {
			l.visit(inner, append(slices.Clone(way), spot{step, node}))
		}
	}
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below(properties[name], name)
	}
	below(node["items"], 0)
	below(node["additionalProperties"], "key")
}

// whole returns a schema with its definition resolved.
func (l *limitTest) whole(node map[string]any) map[string]any {
	all, ok := node["allOf"].([]any)
	if !ok {
		return node
	}
	reference := all[0].(map[string]any)["$ref"].(string)
	out := maps.Clone(l.definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any))
	maps.Copy(out, node)
	return out
}

// atLimits returns values just inside and just outside the limits of a schema.
func atLimits(node map[string]any) (good, bad []any) {
	types, _ := node["type"].([]any)
	if name, ok := node["type"].(string); ok {
		types = []any{name}
	}
	parts := []map[string]any{node}
	if some, ok := node["anyOf"].([]any); ok {
		parts = append(parts, some[0].(map[string]any), some[1].(map[string]any))
	}
	for _, part := range parts {
		if least, ok := part["minimum"].(float64); ok {
			good, bad = append(good, least), append(bad, least-1)
		}
		if most, ok := part["maximum"].(float64); ok {
			good, bad = append(good, most), append(bad, most+1)
		}
		if values, ok := part["enum"].([]any); ok {
			good, bad = append(good, values...), append(bad, "?")
		}
		if value, ok := part["const"]; ok {
			good = append(good, value)
		}
	}
	if node["minLength"] != nil {
		bad = append(bad, "")
	}
	if node["pattern"] != nil || node["const"] != nil || len(types) > 0 && !slices.Contains(types, any("string")) {
		bad = append(bad, "?")
	}
	if len(types) > 0 && !slices.Contains(types, any("null")) {
		bad = append(bad, nil)
	}
	if !slices.Contains(types, any("object")) || node["additionalProperties"] != nil {
		bad = append(bad, map[string]any{"no such field": []any{}})
	}
	return good, bad
}

// try sets a value in a manifest that is valid without it.
func (l *limitTest) try(way []spot, value any, good bool) {
	l.Helper()
	path, location := "", []string{}
	for _, s := range way {
		switch step := s.step.(type) {
		case string:
			path, location = v1beta2.Child(path, step), append(location, step)
		case int:
			path, location = v1beta2.Item(path, step), append(location, strconv.Itoa(step))
		}
	}
	var root any
	decodeYAML(l.T, []byte(around()), &root)
	root = putValue(root, way, value)
	if good {
		last := way[len(way)-1]
		for name, other := range beside(fmt.Sprintf("%v: %v", last.step, value)) {
			root = putValue(root, append(slices.Clone(way[:len(way)-1]), spot{name, last.in}), other)
		}
	}
	text, err := json.Marshal(root)
	if err != nil {
		l.Fatal(err)
	}
	tree, err := instance(text)
	if err != nil {
		l.Fatal(err)
	}
	schemaRefuses := refusedAt(l.schema.Validate(tree), location)
	programRefuses := len(errorsAt(l.T, string(text), path)) > 0
	if schemaRefuses == good || programRefuses == good {
		l.Errorf("%s: %v: good %t; the schema refuses it: %t, the program: %t", path, value, good, schemaRefuses,
			programRefuses)
	}
}

// beside lists fields that a valid value depends on.
func beside(field string) map[string]any {
	return map[string]map[string]any{
		"imageGCHighThresholdPercent: 1": {"imageGCLowThresholdPercent": 0},
		"imageGCLowThresholdPercent: 99": {"imageGCHighThresholdPercent": 100},
		"nodeCIDRMaskSizeIPv4: 1":        {"podSubnet": "0.0.0.0/1", "serviceSubnet": "192.168.0.0/16"},
	}[field]
}

// around is a manifest where every limit can be tested.
func around() string {
	return strings.Replace(mistaken, "clusterNetwork:", "clusterNetwork:\n  kubeProxy: {skipInstallation: true}", 1)
}

// putValue sets a value in a tree, with the required fields on its path.
func putValue(tree any, way []spot, value any) any {
	if len(way) == 0 {
		return value
	}
	first, rest := way[0], way[1:]
	name, ok := first.step.(string)
	if !ok {
		list, _ := tree.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = putValue(list[0], rest, value)
		return list
	}
	fields, _ := tree.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
		required, _ := first.in["required"].([]any)
		for _, r := range required {
			fields[r.(string)] = "x"
			if r == "effect" {
				fields["effect"] = "NoSchedule"
			}
		}
	}
	var others []string
	alternatives, _ := first.in["oneOf"].([]any)
	for _, a := range alternatives {
		if required, ok := a.(map[string]any)["required"].([]any); ok {
			others = append(others, required[0].(string))
		}
	}
	if slices.Contains(others, name) {
		maps.DeleteFunc(fields, func(key string, _ any) bool { return key != name && slices.Contains(others, key) })
	}
	fields[name] = putValue(fields[name], rest, value)
	return fields
}

// refusedAt reports whether a schema error is at or below a location.
func refusedAt(err error, location []string) bool {
	invalid := (*jsonschema.ValidationError)(nil)
	if !errors.As(err, &invalid) {
		return false
	}
	if len(invalid.Causes) == 0 {
		at := invalid.InstanceLocation
		return len(at) >= len(location) && slices.Equal(at[:len(location)], location)
	}
	return slices.ContainsFunc(invalid.Causes, func(cause *jsonschema.ValidationError) bool {
		return refusedAt(cause, location)
	})
}
