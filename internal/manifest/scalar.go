package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar decodes a text, a number or a truth value.
func (d *decoder) scalar(at place, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(at, "", "expected %s, got %s", kindName(v.Kind()), describe(n, at.secret))
		return
	}
	switch v.Kind() {
	case reflect.String:
		// A number or truth value is taken as it is written: "1.30" stays 1.30, and labels may be written
		// without quotes.
		v.SetString(n.Value)
	case reflect.Bool:
		d.truth(at, n, v)
	case reflect.Int, reflect.Int32, reflect.Int64:
		d.integer(at, n, v)
	default:
		d.fail(at, "", "cannot be set")
	}
}

func (d *decoder) truth(at place, n *yaml.Node, v reflect.Value) {
	switch {
	case n.ShortTag() == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case slices.Contains([]string{"yes", "on", "true"}, strings.ToLower(n.Value)):
		d.fail(at, "write true, without quotes", "expected true or false, got %s", describe(n, at.secret))
	case slices.Contains([]string{"no", "off", "false"}, strings.ToLower(n.Value)):
		d.fail(at, "write false, without quotes", "expected true or false, got %s", describe(n, at.secret))
	default:
		d.fail(at, "", "expected true or false, got %s", describe(n, at.secret))
	}
}

func (d *decoder) integer(at place, n *yaml.Node, v reflect.Value) {
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
	switch {
	case n.ShortTag() == "!!int" && (err != nil || v.OverflowInt(number)):
		d.fail(at, "", "%s is too large", n.Value)
	case n.ShortTag() == "!!int":
		v.SetInt(number)
	case err == nil:
		d.fail(at, "write "+n.Value+" without quotes", "expected a number, got %s", describe(n, at.secret))
	default:
		d.fail(at, "", "expected a whole number, got %s", describe(n, at.secret))
	}
}

func (d *decoder) anyScalar(at place, n *yaml.Node, v reflect.Value) {
	var value any
	if err := n.Decode(&value); err != nil {
		d.fail(at, "", "cannot be read as %s", n.ShortTag())
		return
	}
	switch value.(type) {
	case nil:
	case bool, string, int, int64, uint64, float64:
		v.Set(reflect.ValueOf(value))
	default: // a time, or bytes: JSON knows neither
		v.Set(reflect.ValueOf(n.Value))
	}
}

// describe says what a node is, with a short value's text unless that is secret.
func describe(n *yaml.Node, secret bool) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return describe(n.Alias, secret)
	}
	kind := map[string]string{
		"!!int":   "the number",
		"!!float": "the number",
		"!!bool":  "the truth value",
		"!!null":  "nothing",
	}[n.ShortTag()]
	text := " " + n.Value
	if kind == "" {
		kind, text = "the text", fmt.Sprintf(" %q", n.Value)
	}
	if secret || len(n.Value) > 40 || n.ShortTag() == "!!null" {
		text = ""
	}
	return kind + text
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}
