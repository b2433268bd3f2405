package v1beta2

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"kubeone/internal/testutil/golden"
)

const docsFile = "../../../docs/manifest.md"

//go:embed testdata/manifest.md
var docsIntro string

const ignoredIntro = `
## Ignored fields

KubeOne has these fields too. kubeone accepts and ignores them, with all fields below them.

`

// mostNested is the largest size of a top-level field that is nested in the first list. Larger ones get a section.
const mostNested = 4

// TestDocs keeps docs/manifest.md current: every field of every type, in the order of the types.
func TestDocs(t *testing.T) {
	t.Parallel()
	cluster, host := reflect.TypeFor[KubeOneCluster](), reflect.TypeFor[HostConfig]()
	d := page{docs: docs{comments: comments(t)}, shown: map[reflect.Type]string{host: host.Name()}}
	var large []section
	for f := range cluster.Fields() {
		if of := structOf(f.Type); of != nil && !isIgnored(f) && d.size(of) > mostNested {
			d.shown[of] = JSONName(f)
			large = append(large, section{path: JSONName(f), of: of})
		}
	}
	for _, s := range append([]section{{of: cluster}, {path: host.Name(), of: host}}, large...) {
		fmt.Fprintf(&d.fields, "\n### %s\n\n", cmp.Or(s.path, s.of.Name()))
		d.rows(s, "", "")
	}
	for _, problem := range d.problems {
		t.Error(problem)
	}
	golden.Check(t, docsFile, docsIntro+d.fields.String()+ignoredIntro+d.ignoredList())
}

// docs is what the tests know about the fields.
type docs struct {
	comments map[string]string // by "Type" and "Type.Field"
	done     map[reflect.Type]bool
	problems []string
}

// page is docs/manifest.md as far as it is written.
type page struct {
	docs
	fields  strings.Builder
	shown   map[reflect.Type]string // the path where a type's fields are listed
	ignored []ignoredFields
}

// section is a list of a type's fields. The path is empty for the manifest itself.
type section struct {
	path string
	of   reflect.Type
	note string // ends what is said about each field
}

// ignoredFields are the ignored fields of a type.
type ignoredFields struct {
	path  string
	names []string
}

var (
	defaultOf = regexp.MustCompile(`Default: (.+)\.$`)
	required  = regexp.MustCompile(`Required[^.]*\.`)
)

// isIgnored reports whether a field has no effect, and nothing to say about it but its name.
func isIgnored(f reflect.StructField) bool {
	return f.Tag.Get("carried") == "no" && f.Tag.Get("security") == ""
}

// shownFields returns a type's fields without the ignored ones.
func shownFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Anonymous || isIgnored(f)
	})
}

// size returns the number of rows of a type. A type that is listed elsewhere has none.
func (d *page) size(t reflect.Type) int {
	fields := shownFields(t)
	n := len(fields)
	for _, f := range fields {
		if below := structOf(f.Type); below != nil && d.shown[below] == "" {
			n += d.size(below)
		}
	}
	return n
}

// rows writes the fields of a type. The prefix is the path of a field whose only field is written in its place.
func (d *page) rows(s section, indent, prefix string) {
	d.ignore(s)
	for _, f := range shownFields(s.of) {
		name, text, below := JSONName(f), d.text(s.of, f)+s.note, structOf(f.Type)
		inner := section{path: strings.TrimPrefix(s.path+"."+name, "."), of: below}
		if below == nil || below.NumField() == 0 {
			d.row(indent, prefix+name, typeName(f.Type), text)
			continue
		}
		at := d.shown[below]
		only := shownFields(below)
		switch {
		case at != "":
			d.row(indent, prefix+name, typeName(f.Type), text+" See "+reference(at)+".")
		case len(only) == 1 && only[0].Name == "Enable": // the feature says more than its switch
			d.row(indent, prefix+name+".enable", "boolean", text)
		case len(only) == 1:
			inner.note = carriedOut(f)
			d.rows(inner, indent, prefix+name+".")
		default:
			d.shown[below] = inner.path
			d.row(indent, prefix+name, typeName(f.Type), text)
			d.rows(inner, indent+"  ", "")
		}
	}
}

// reference returns a link to the section with the given name, otherwise the path of the field.
func reference(path string) string {
	if strings.Contains(path, ".") {
		return "`" + path + "`"
	}
	return "[" + path + "](#" + strings.ToLower(path) + ")"
}

// ignore notes the ignored fields of a type.
func (d *page) ignore(s section) {
	var names []string
	for _, f := range reflect.VisibleFields(s.of) {
		if isIgnored(f) {
			names = append(names, "`"+JSONName(f)+"`")
		}
	}
	if len(names) > 0 {
		d.ignored = append(d.ignored, ignoredFields{s.path, names})
	}
}

func (d *page) ignoredList() string {
	var out strings.Builder
	for _, i := range d.ignored {
		line := strings.Join(i.names, ", ")
		if i.path != "" {
			line = "`" + i.path + "`: " + line
		}
		out.WriteString(strings.ReplaceAll(wrapped("- "+line, 118), "\n", "\n  ") + "\n")
	}
	return out.String()
}

// text returns what the page says about a field.
func (d *page) text(t reflect.Type, f reflect.StructField) string {
	text := sentence(d.comment(t, f))
	if m := defaultOf.FindStringSubmatch(text); m != nil {
		text = strings.TrimSuffix(text, m[0])
		switch {
		case m[1] == "false": // as the page says of all of them
		case strings.Contains(m[1], " "):
			text += m[0]
		default:
			text += "Default: `" + m[1] + "`."
		}
	}
	if m := required.FindString(text); m != "" {
		text = strings.Replace(text, m, "**"+strings.TrimSuffix(m, ".")+".**", 1)
	}
	text = strings.TrimSpace(text)
	if f.Tag.Get("secret") == "true" {
		text += " Secret."
	}
	return text + carriedOut(f)
}

// row writes one field.
func (d *page) row(indent, name, typ, text string) {
	if typ != "" {
		typ = " (" + typ + ")"
	}
	lines := wrapped("- `"+name+"`"+typ+": "+text, 120-len(indent)-2)
	d.fields.WriteString(indent + strings.ReplaceAll(lines, "\n", "\n"+indent+"  ") + "\n")
}

// comment finds a field's comment in the type, or in the type that is embedded in it.
func (d *docs) comment(t reflect.Type, f reflect.StructField) string {
	owner := t
	if len(f.Index) > 1 {
		owner = t.Field(f.Index[0]).Type
	}
	comment, ok := strings.CutPrefix(d.comments[owner.Name()+"."+f.Name], f.Name+" ")
	if !ok {
		d.problems = append(d.problems,
			fmt.Sprintf("%s.%s has no comment that begins with its name", owner.Name(), f.Name))
	}
	return comment
}

// wrapped returns a text in lines of at most that many columns.
func wrapped(text string, columns int) string {
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+width > columns:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += width
	}
	return out.String()
}

// sentence returns a comment without its name: "is the port." becomes "The port."
func sentence(comment string) string {
	comment = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(comment), "is "), "are ")
	return strings.ToUpper(comment[:1]) + comment[1:]
}

// structOf returns the struct of a field, or of the items of a list or map; nil if there is none.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// typeName returns the type of a field as the page names it: "" for a string and for a struct.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	case reflect.Struct:
		if t.NumField() == 0 {
			return "`{}`"
		}
		return ""
	case reflect.String:
		return ""
	case reflect.Bool:
		return "boolean"
	default:
		return "integer"
	}
}

// comments returns the comments of all types and fields of this package, each on one line.
func comments(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				typeComments(gen, out)
			}
		}
	}
	return out
}

func typeComments(decl *ast.GenDecl, out map[string]string) {
	for _, spec := range decl.Specs {
		s := spec.(*ast.TypeSpec)
		out[s.Name.Name] = strings.Join(strings.Fields(decl.Doc.Text()), " ")
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				out[s.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
	}
}
