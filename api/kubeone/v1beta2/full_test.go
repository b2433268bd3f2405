package v1beta2

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kubeone/internal/testutil/golden"
)

const fullIntro = `# Every field of a manifest, with its meaning. A field is commented out if it is an alternative
# to a field that is shown, if it has a good default, or if kubeone does not carry it out, as its comment says then.
# docs/manifest.md lists the fields. Generated from the comments in api/kubeone/v1beta2 and the values in its
# testdata/full-values.yaml.
`

// exampleWidth is the width of comments in columns, without their indentation.
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

// example is the example manifest. It shows all fields of a type once, and afterwards only fields with a value.
type example struct{ docs }

// fields returns the lines of a struct's fields; values is the mapping with their values, or nil. off means that the
// struct is commented out.
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

// about returns a field's comment.
func (e *example) about(t reflect.Type, f reflect.StructField) []string {
	text := sentence(link.ReplaceAllString(strings.ReplaceAll(e.comment(t, f), "`", ""), "$1"))
	return commented(strings.Split(wrapped(text+carriedOut(f), exampleWidth), "\n"))
}

// field returns the lines of a field with its value or a placeholder.
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

// items returns the lines of a list's items.
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

// entries returns the lines of a map's entries.
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

// leaf returns the lines of a field without fields of its own.
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

// placeholder returns a value for a field that is commented out.
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

// indented prepends one text to the first line, and another text to the others.
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

// dashed returns lines as an item of a list. The dash is before the first line that is not a comment.
func dashed(lines []string) []string {
	out, dash := indented("    ", "    ", lines), false
	for i, line := range lines {
		if !dash && !strings.HasPrefix(line, "#") && line != "" {
			out[i], dash = "  - "+line, true
		}
	}
	if !dash { // the whole item is commented out
		out[0] = "  - " + strings.TrimPrefix(out[0], "    ")
	}
	return out
}
