package v1beta2

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
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

KubeOne has these fields too. This version does not carry them out.
`

// TestDocs keeps docs/manifest.md current: every field of every type, in the order of the types.
func TestDocs(t *testing.T) {
	t.Parallel()
	d := docs{comments: comments(t), done: map[reflect.Type]bool{}}
	d.WriteString(docsIntro)
	d.typ(reflect.TypeFor[KubeOneCluster](), "KubeOneCluster", "yes")
	d.WriteString(ignoredIntro + d.ignored.String())
	for _, problem := range d.problems {
		t.Error(problem)
	}
	golden.Check(t, docsFile, d.String())
}

// docs is the text written so far.
type docs struct {
	strings.Builder
	ignored  strings.Builder   // the tables of types whose fields are all ignored
	comments map[string]string // by "Type" and "Type.Field"
	done     map[reflect.Type]bool
	problems []string
}

// notCarried is what the page says of a field that this version ignores.
const notCarried = "no"

var (
	defaultOf = regexp.MustCompile(`Default: (.+)\.$`)
	required  = regexp.MustCompile(`Required[^.]*\.`)
)

// typ writes a type's table, and those of the types that its fields have, below each other.
func (d *docs) typ(t reflect.Type, title, carried string) {
	if d.done[t] {
		return
	}
	d.done[t] = true
	out := &d.Builder
	if carried == notCarried {
		out = &d.ignored
	}
	fmt.Fprintf(out, "\n### %s\n", title)
	if carried != notCarried {
		about := sentence(strings.TrimPrefix(d.comments[t.Name()], t.Name()+" "))
		fmt.Fprintf(out, "\n%s\n\n| field | type | default | carried out | meaning |\n|---|---|---|---|---|\n",
			wrapped(about, 120))
	} else {
		out.WriteString("\n| field | type | default | carried out |\n|---|---|---|---|\n")
	}
	var later []func()
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		inside := d.row(out, f, d.comment(t, f), carried)
		if below := structOf(f.Type); below != nil && below.NumField() > 0 {
			later = append(later, func() { d.typ(below, below.Name(), inside) })
		}
	}
	for _, write := range later {
		write()
	}
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

// row writes one field, and returns whether what is inside it is carried out.
func (d *docs) row(out *strings.Builder, f reflect.StructField, comment, carried string) string {
	brief := carried == notCarried
	value := ""
	if m := defaultOf.FindStringSubmatch(comment); m != nil {
		value, comment = "`"+m[1]+"`", strings.TrimSuffix(comment, m[0])
		if strings.Contains(m[1], " ") {
			value = m[1]
		}
	}
	if m := required.FindString(comment); m != "" {
		comment = strings.Replace(comment, m, "**"+strings.TrimSuffix(m, ".")+".**", 1)
	}
	if f.Tag.Get("secret") == "true" {
		comment += " Secret."
	}
	if tag, ok := f.Tag.Lookup("carried"); ok {
		carried = notCarried
		if f.Tag.Get("security") == "yes" {
			carried = "no, stops apply"
		}
		if _, idle, found := strings.Cut(tag, "idle="); found {
			carried = "`" + idle + "` only"
		} else if tag == carriedWithoutCloud {
			carried = "with `cloudProvider: {none: {}}`"
		} else if tag == carriedByNothing {
			carried = "nothing to do"
		}
	}
	fmt.Fprintf(out, "| `%s` | %s | %s | %s |", JSONName(f), typeName(f.Type), value, carried)
	if !brief {
		fmt.Fprintf(out, " %s |", strings.ReplaceAll(sentence(comment), "|", `\|`))
	}
	out.WriteByte('\n')
	return carried
}

// wrapped is a text in lines of up to so many columns.
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

// sentence is a comment without its name: "is the port." becomes "The port."
func sentence(comment string) string {
	comment = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(comment), "is "), "are ")
	return strings.ToUpper(comment[:1]) + comment[1:]
}

// structOf is the struct that a field has: itself, or a list or map of it.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return listOf(t.Elem(), "[]", "list of ")
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "object"
		}
		return listOf(t.Elem(), "map[string]", "map to ")
	case reflect.Struct:
		if t.NumField() == 0 {
			return "`{}`"
		}
		return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	default:
		return "integer"
	}
}

// listOf names a list or map of a type: in Go's words, or in English before a link.
func listOf(t reflect.Type, of, ofLinked string) string {
	if structOf(t) != nil {
		return ofLinked + typeName(t)
	}
	return of + typeName(t)
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
