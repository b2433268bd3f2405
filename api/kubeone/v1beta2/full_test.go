package v1beta2

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kubeone/internal/testutil/golden"
)

const fullIntro = `# Every field of a manifest, with its meaning. A field that is commented out is another choice
# than the one shown, is left to what it configures, or is not carried out by this version: then its comment says so.
# docs/manifest.md has them in tables. Generated from the comments in api/kubeone/v1beta2 and the values in its
# testdata/full-values.yaml.
`

// exampleWidth is how many columns a comment has before it is indented.
const exampleWidth = 96

// TestFullExample keeps examples/full.yaml current: every field of every type, in the order of the types. A field
// without a value in testdata/full-values.yaml is commented out.
func TestFullExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/full-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values yaml.Node
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	e := example{docs: docs{comments: comments(t), done: map[reflect.Type]bool{}}}
	lines := e.fields(reflect.TypeFor[KubeOneCluster](), values.Content[0], false)
	for _, problem := range e.problems {
		t.Error(problem)
	}
	golden.Check(t, "../../../examples/full.yaml", fullIntro+strings.Join(lines, "\n")+"\n")
}

// example is an example manifest as far as it is made. Of a type that was shown with all fields, those with a value are
// shown from then on.
type example struct{ docs }

// fields are a struct's fields; values is the mapping with their values, or nil. off says that they are inside of
// something that is commented out.
func (e *example) fields(t reflect.Type, values *yaml.Node, off bool) []string {
	all := !e.done[t]
	e.done[t] = true
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		value := valueOf(values, JSONName(f))
		if f.Anonymous || value == nil && !all {
			continue
		}
		if t == reflect.TypeFor[KubeOneCluster]() {
			out = append(out, "")
		}
		if all {
			out = append(out, e.about(t, f)...)
		}
		lines := e.field(t, f, value, off || value == nil)
		if value == nil && !off {
			lines = commented(lines)
		}
		out = append(out, lines...)
	}
	return out
}

// about is a field's comment.
func (e *example) about(t reflect.Type, f reflect.StructField) []string {
	text := sentence(link.ReplaceAllString(strings.ReplaceAll(e.comment(t, f), "`", ""), "$1"))
	return commented(strings.Split(wrapped(text+carriedOut(f), exampleWidth), "\n"))
}

// field is one field with its value, or with what stands for one.
func (e *example) field(t reflect.Type, f reflect.StructField, value *yaml.Node, off bool) []string {
	name := JSONName(f) + ":"
	of := structOf(f.Type)
	if of == nil || of.NumField() == 0 {
		return e.leaf(t, f, value)
	}
	kind := f.Type
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.Kind() {
	case reflect.Slice:
		return append([]string{name}, e.items(of, value, off)...)
	case reflect.Map:
		return append([]string{name}, e.entries(of, value, off)...)
	default:
		if e.done[of] && value == nil {
			return []string{name + " {}"}
		}
		return append([]string{name}, indented("  ", "  ", e.fields(of, value, off))...)
	}
}

// items are a list's items.
func (e *example) items(of reflect.Type, list *yaml.Node, off bool) []string {
	items := []*yaml.Node{nil}
	if list != nil {
		items = list.Content
	}
	var out []string
	for _, item := range items {
		lines := e.fields(of, item, off)
		if len(lines) == 0 {
			lines = []string{"{}"}
		}
		// The dash stands before the first field that is not commented out.
		out = append(out, dashed(lines)...)
	}
	return out
}

// entries are a map's entries.
func (e *example) entries(of reflect.Type, entries *yaml.Node, off bool) []string {
	if entries == nil {
		return append([]string{"  example:"}, indented("    ", "    ", e.fields(of, nil, off))...)
	}
	var out []string
	for i := 0; i+1 < len(entries.Content); i += 2 {
		out = append(out, "  "+entries.Content[i].Value+":")
		out = append(out, indented("    ", "    ", e.fields(of, entries.Content[i+1], off))...)
	}
	return out
}

// leaf is a field whose value has no fields of the format.
func (e *example) leaf(t reflect.Type, f reflect.StructField, value *yaml.Node) []string {
	if value == nil {
		stand := placeholder(f.Type)
		if m := defaultOf.FindStringSubmatch(e.comment(t, f)); m != nil && !strings.ContainsAny(m[1], " :") {
			stand = m[1]
		}
		return []string{JSONName(f) + ": " + stand}
	}
	var text strings.Builder
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: JSONName(f)}, value,
	}}); err != nil {
		e.problems = append(e.problems, err.Error())
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// placeholder stands for a value in a field that is commented out.
func placeholder(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return placeholder(of.Elem())
	case reflect.Slice:
		return "[]"
	case reflect.Map, reflect.Struct:
		return "{}"
	case reflect.Bool:
		return "true"
	case reflect.String:
		return `""`
	default:
		return "1"
	}
}

func valueOf(values *yaml.Node, name string) *yaml.Node {
	if values == nil {
		return nil
	}
	for i := 0; i+1 < len(values.Content); i += 2 {
		if values.Content[i].Value == name {
			return values.Content[i+1]
		}
	}
	return nil
}

func commented(lines []string) []string { return indented("# ", "# ", lines) }

// indented puts a text before the first line, and another one before the rest.
func indented(first, rest string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			out[i] = rest + line
		}
	}
	if len(out) > 0 && lines[0] != "" {
		out[0] = first + lines[0]
	}
	return out
}

// dashed makes lines an item of a list: the dash stands before the first that is not a comment.
func dashed(lines []string) []string {
	out, dash := indented("    ", "    ", lines), false
	for i, line := range lines {
		if !dash && !strings.HasPrefix(line, "#") && line != "" {
			out[i], dash = "  - "+line, true
		}
	}
	if !dash { // all of it is commented out
		out[0] = "  - " + strings.TrimPrefix(out[0], "    ")
	}
	return out
}
