package fields

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubeone/api/kubeone/v1beta2"
)

// field is a field of the manifest with no field below it. Path is how the data name it:
// "controlPlane.hosts[].taints[].key", with * for any key of a map.
type field struct {
	path    string
	carried string // what docs/manifest.md says: "yes", "no", …
}

// carriedOut reports whether the documentation says that something is done about the field, whatever its value.
func (f field) carriedOut() bool {
	return f.carried == "yes" || strings.HasPrefix(f.carried, "with `")
}

// rows are the rows of the tables of docs/manifest.md, "carried out" by type and field, and which of them were asked
// for.
type rows struct {
	carried map[string]string
	asked   map[string]bool
}

var (
	heading = regexp.MustCompile(`^### (\w+)$`)
	row     = regexp.MustCompile("^\\| `(\\w+)` \\| [^|]+ \\| [^|]* \\| ([^|]+) \\|")
)

func documented(t *testing.T) rows {
	t.Helper()
	text, err := os.ReadFile("../../docs/manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	out := rows{carried: map[string]string{}, asked: map[string]bool{}}
	of := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := heading.FindStringSubmatch(line); m != nil {
			of = m[1]
		}
		if m := row.FindStringSubmatch(line); m != nil && of != "" {
			out.carried[of+"."+m[1]] = m[2]
		}
	}
	return out
}

// fieldsOf returns the fields of the API's types, in their order.
func fieldsOf(t *testing.T, docs rows) []field {
	t.Helper()
	var out []field
	var walk func(typ reflect.Type, path, outer string)
	walk = func(typ reflect.Type, path, outer string) {
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous {
				continue
			}
			key := typ.Name() + "." + v1beta2.JSONName(f)
			carried, ok := docs.carried[key]
			if !ok {
				t.Errorf("docs/manifest.md has no row for %s", key)
			}
			docs.asked[key] = true
			if carried == "yes" || !(field{carried: outer}).carriedOut() {
				carried = outer // what is said of the whole is said of its parts
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
	walk(reflect.TypeFor[v1beta2.KubeOneCluster](), "", "yes")
	for key := range docs.carried {
		if !docs.asked[key] {
			t.Errorf("docs/manifest.md has a row for %s, which is no field", key)
		}
	}
	return out
}

// paths returns the fields that a test is needed for, or those that need none.
func paths(all []field, carriedOut bool) []string {
	var out []string
	for _, f := range all {
		if f.carriedOut() == carriedOut {
			out = append(out, f.path)
		}
	}
	return slices.Clip(out)
}
