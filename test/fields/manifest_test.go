package fields

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// tree is a manifest as decoded YAML.
type tree = map[string]any

// setField sets the field of a path, or removes it if the value is nil. "[]" is the first item of a list, and "*" the
// first key of a map. Both are created if missing.
func setField(t tree, path string, value any) error {
	text, err := json.Marshal(value) // a copy, because entries share their values
	if err != nil {
		return err
	}
	var own any
	if err := json.Unmarshal(text, &own); err != nil {
		return err
	}
	_, err = putValue(t, strings.Split(path, "."), own)
	return err
}

var item = regexp.MustCompile(`^(\w+)\[(\d*)]$`)

// putValue returns the value at the names after the change.
func putValue(at any, names []string, value any) (any, error) {
	if len(names) == 0 {
		return value, nil
	}
	m, ok := at.(map[string]any)
	if at != nil && !ok {
		return nil, fmt.Errorf("%s: there is %v", names[0], at)
	}
	if m == nil {
		m = tree{}
	}
	name, index := names[0], -1
	if name == "*" {
		name = "key.example.com"
	}
	if found := item.FindStringSubmatch(name); found != nil {
		name = found[1]
		index, _ = strconv.Atoi(found[2]) // "" is 0
	}
	if index < 0 {
		below, err := putValue(m[name], names[1:], value)
		m[name] = below
		if below == nil {
			delete(m, name)
		}
		return m, err
	}
	list, _ := m[name].([]any)
	for len(list) <= index {
		list = append(list, nil)
	}
	below, err := putValue(list[index], names[1:], value)
	list[index], m[name] = below, list
	return m, err
}

// expandKey returns the paths of a key with at most one list in braces: "{a,b}.c" stands for a.c and b.c.
func expandKey(key string) []string {
	before, rest, ok := strings.Cut(key, "{")
	if !ok {
		return []string{key}
	}
	list, after, _ := strings.Cut(rest, "}")
	var out []string
	for one := range strings.SplitSeq(list, ",") {
		out = append(out, before+one+after)
	}
	return out
}
