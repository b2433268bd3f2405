package v1beta2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kubeone/internal/testutil/golden"
)

// TestSchema keeps schema.json current: every field of every type, with its comment and its limits.
func TestSchema(t *testing.T) {
	t.Parallel()
	s := schemas{
		docs: docs{comments: comments(t)}, definitions: schema{}, limits: limits(), alternatives: alternatives(),
	}
	root := s.object(reflect.TypeFor[KubeOneCluster]())
	maps.Copy(root, schema{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       Kind + " " + APIVersion,
		"type":        "object",
		"definitions": s.definitions,
	})
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(root); err != nil {
		t.Fatal(err)
	}
	for _, problem := range s.problems {
		t.Error(problem)
	}
	for name := range s.limits {
		t.Errorf("there is no field %s to limit", name)
	}
	for of := range s.alternatives {
		t.Errorf("there is no type %s with alternatives", of.Name())
	}
	golden.Check(t, "schema.json", text.String())
}

// schema is a schema, or a part of one.
type schema map[string]any

// schemas builds the schema. It removes the limits and alternatives that it has used.
type schemas struct {
	docs
	definitions  schema
	limits       map[string]schema
	alternatives map[reflect.Type][]string
}

// must matches the sentence about a field that must be in the manifest, whatever Terraform says.
var must = regexp.MustCompile(` ?\bRequired\.`)

// object returns the schema of a struct. null is valid: it leaves the field unset.
func (s *schemas) object(of reflect.Type) schema {
	properties, required := schema{}, []string{}
	for _, f := range reflect.VisibleFields(of) {
		if f.Anonymous {
			continue
		}
		comment := s.comment(of, f)
		value := s.value(f.Type)
		name := ownerOf(of, f).Name() + "." + f.Name
		maps.Copy(value, s.limit(name, comment))
		if must.MatchString(comment) {
			required = append(required, JSONName(f))
			value = something(value)
		}
		maps.Copy(value, notes(f, comment))
		properties[JSONName(f)] = value
	}
	out := schema{"type": []string{"object", "null"}, "additionalProperties": false}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if names, ok := s.alternatives[of]; ok {
		out["oneOf"] = oneAtMost(names)
		delete(s.alternatives, of)
	}
	return out
}

// ownerOf returns the type that declares a field: the struct, or one embedded in it.
func ownerOf(of reflect.Type, f reflect.StructField) reflect.Type {
	if len(f.Index) > 1 {
		return of.Field(f.Index[0]).Type
	}
	return of
}

// value returns the schema of a field's type. A string may be an unquoted number or boolean.
func (s *schemas) value(of reflect.Type) schema {
	switch of.Kind() {
	case reflect.Pointer:
		return s.value(of.Elem())
	case reflect.Struct:
		return s.reference(of)
	case reflect.Slice:
		return schema{"type": []string{"array", "null"}, "items": something(s.value(of.Elem()))}
	case reflect.Map:
		out := schema{"type": []string{"object", "null"}}
		if of.Elem().Kind() != reflect.Interface {
			out["additionalProperties"] = s.value(of.Elem())
		}
		return out
	case reflect.Bool:
		return schema{"type": []string{"boolean", "null"}}
	case reflect.String:
		return schema{"type": []string{"string", "number", "boolean", "null"}}
	default:
		return schema{"type": []string{"integer", "null"}}
	}
}

// reference returns a reference to a struct's definition. Draft 7 ignores keywords beside a $ref, so the $ref is inside
// allOf, and the field can have its own description.
func (s *schemas) reference(of reflect.Type) schema {
	if s.definitions[of.Name()] == nil {
		s.definitions[of.Name()] = schema{} // no type has itself inside
		definition := s.object(of)
		definition["description"] = s.comments[of.Name()]
		s.definitions[of.Name()] = definition
	}
	return schema{"allOf": []schema{{"$ref": "#/definitions/" + of.Name()}}}
}

// something returns the schema of a value that must not be null.
func something(value schema) schema {
	switch of := value["type"].(type) {
	case nil:
		value["type"] = "object"
	case []string:
		value["type"] = slices.DeleteFunc(of, func(name string) bool { return name == "null" })
	}
	return value
}

// oneAtMost returns the schema for at most one of these fields.
func oneAtMost(names []string) []schema {
	var set []schema
	for _, name := range names {
		set = append(set, schema{
			"required": []string{name}, "properties": schema{name: schema{"type": "object"}},
		})
	}
	return append(set, schema{"not": schema{"anyOf": slices.Clone(set)}})
}

var (
	goDuration = regexp.MustCompile(`, as a Go duration`)
	link       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	deprecated = regexp.MustCompile(`Deprecated: (.+)\.$`)
)

// limit returns the limit of a field's values.
func (s *schemas) limit(name, comment string) schema {
	limit, found := s.limits[name]
	delete(s.limits, name)
	if !found && goDuration.MatchString(comment) {
		return duration()
	}
	return limit
}

// notes returns what an editor shows about a field.
func notes(f reflect.StructField, comment string) schema {
	text := sentence(link.ReplaceAllString(must.ReplaceAllString(comment, ""), "$1"))
	out := schema{}
	if m := deprecated.FindStringSubmatch(text); m != nil {
		out["deprecationMessage"] = sentence(m[1]) + "." // draft 7 has no such keyword; editors know this one
	}
	if m := defaultOf.FindStringSubmatch(text); m != nil {
		var value any
		if json.Unmarshal([]byte(m[1]), &value) == nil && f.Type.Kind() != reflect.String {
			out["default"] = value
		}
	}
	switch f.Tag.Get("secret") {
	case "true":
		out["writeOnly"] = true
		text += " Secret."
	case "keys":
		text += " Values of keys that look like those of secrets are secret."
	}
	out["description"] = text + carriedOut(f)
	return out
}

// carriedOut returns a sentence about a field that is not carried out, or not always.
func carriedOut(f reflect.StructField) string {
	tag, ok := f.Tag.Lookup("carried")
	_, idle, found := strings.Cut(tag, "idle=")
	switch {
	case !ok:
		return ""
	case found:
		return " Only " + idle + " is supported."
	case tag == carriedWithoutCloud:
		return " Supported only with cloudProvider none."
	case tag == carriedWithExternal:
		return " Supported only with external."
	case tag == carriedByNothing:
		return " This field has no effect."
	case f.Tag.Get("security") == "yes":
		return " Not supported; apply stops while it is set."
	}
	return " Not supported."
}

// span matches a Go duration with units.
const span = `[+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

// duration returns the schema of a Go duration of 0 or more. 0 is the only valid number.
func duration() schema {
	return schema{
		"type":    []string{"string", "integer", "null"},
		"pattern": `^` + span + `$|^[+-]?0$|^$`,
		"minimum": 0, "maximum": 0,
	}
}

// choice returns the schema of one of these values. "" and null leave the default.
func choice(values ...any) schema {
	return schema{"anyOf": []schema{
		{"enum": values}, {"type": []string{"string", "null"}, "maxLength": 0},
	}}
}

// keys returns the schema of a map with only these keys.
func keys(names []string) schema { return schema{"propertyNames": schema{"enum": names}} }

// or returns the schema of a number of least or more, or a special one.
func or(special, least int) schema {
	return schema{"anyOf": []schema{{"const": special}, {"minimum": least}}}
}

func between(least, most int) schema { return schema{"minimum": least, "maximum": most} }

// versionForm matches the beginning of versions that Validate accepts.
func versionForm() string {
	var minors []string
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		minors = append(minors, strconv.Itoa(minor))
	}
	return fmt.Sprintf(`^\s*v?1[.](%s)[.][0-9]`, strings.Join(minors, "|"))
}

func anyOf(names []string) []any {
	var out []any
	for _, name := range names {
		out = append(out, name)
	}
	return out
}
