package v1beta2

import (
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

const docsIntro = `# The manifest

Generated from the comments in ` + "`api/kubeone/v1beta2`" + `; ` + "`go test ./api/... -update`" + ` rewrites it.

A manifest is one YAML document with the fields below. Fields that do not exist, wrong types and fields that are set
twice are errors, all reported at once with their lines. A field that is *not carried out* is accepted, and this version
does nothing about it; ` + "`kubeone plan`" + ` and ` + "`kubeone config validate`" + ` list those that are set.
Where it says *stops apply*, the field is
there to make the cluster safer, and nothing is done as long as it is set. Where it says *nothing to do*, the field is
checked, and has no effect. ` + "`test/fields`" + ` counts the fields that are carried out: it shows for each what
comes of its change. Examples are in [examples](../examples).

Values of secret fields stay on the operator's machine: they are in no plan, no log, and not in the manifest that is
kept in the cluster.

## Editors

` + "`kubeone config schema > kubeone.schema.json`" + ` writes the manifest's JSON Schema. An editor with the YAML
language server completes fields, shows what they mean and marks what is wrong, if the manifest begins with

` + "```yaml\n# yaml-language-server: $schema=kubeone.schema.json\n```" + `

The schema refuses no manifest that the program accepts, but it does not find every mistake: fields that contradict each
other, addresses, keys and certificates that are not valid, names that are used twice.
` + "`kubeone config validate`" + `
finds these too, without connecting to any host.

## Terraform and OpenTofu

` + "`-t`" + ` takes a file with the JSON of ` + "`terraform output -json`" + ` or of a state, ` + "`-`" + `
for standard input, or a folder. ` + "`terraform output -json`" + ` is run there, for a minute at most:
` + "`tofu`" + ` instead, where ` + "`.terraform.lock.hcl`" + ` has providers of registry.opentofu.org, or where
there is no ` + "`terraform`" + `. So the workspace and the backend that are selected there count. Where neither program
is installed, the folder's ` + "`terraform.tfstate`" + ` is read, if it is certainly the state in use: no other
workspace is selected (` + "`.terraform/environment`, `TF_WORKSPACE`" + `), no other backend is configured, and it is
not empty.
Read are the outputs
` + "`kubeone_api`, `kubeone_hosts`, `kubeone_static_workers`, `kubeone_workers` and `proxy`" + `.

| what | how the two are merged |
|---|---|
| endpoint, alternative names | Terraform's replace the manifest's |
| name | must be equal, if both have one |
| cloud provider | the manifest's, if it has one |
| control-plane hosts | Terraform's list replaces the manifest's. A host in both (one has the other's address or` +
	` hostname) keeps what the manifest sets: taints, labels, annotations, kubelet, SSH |
| static workers | Terraform's are added, group by group; a host in both is one host, as above |
| worker machines | new ones are added; of one in both, the missing keys of cloudProviderSpec |
| proxy | the manifest's, filled up with Terraform's |

Relative paths of either are relative to the manifest's folder.

## Credentials

` + "`-c`/`--credentials FILE`" + ` names a file that its owner alone may read (mode 0600), in KubeOne's format:

` + "```yaml" + `
registriesAuth: |
  apiVersion: kubeone.k8c.io/v1beta2
  kind: ContainerRuntimeContainerd
  registries:
    registry.example.com:5000:
      auth:
        username: puller
        password: "a password"
` + "```" + `

In place of username and password there may be ` + "`auth`" + ` (` + "`user:password`" + ` in base64) or an
` + "`identityToken`" + `. For Docker Hub write ` + "`docker.io`" + `. What the file says of a registry goes before
` + "`containerRuntime.containerd.registries.NAME.auth`" + ` in the manifest. A mirror's credentials are written under
the mirror's own name. Keys of clouds, charts and addons (` + "`HCLOUD_TOKEN`, `cloudConfig`, `customSecrets`" + `) are
not used by this version, and are warned about; neither is the environment, which has none of registries.

A user and password in ` + "`proxy.http`" + ` and ` + "`proxy.https`" + ` are for containerd and for downloads on hosts.

Hosts have them in files for root alone ([security.md](security.md#credentials-for-registries-and-proxies)); what
becomes of them later is in [operations.md](operations.md#other-settings). Hosts of Machines get the same, by way of
[a Secret](machines.md#credentials). Where this machine looks for digests of images itself, it logs in as
` + "`docker login`" + ` has left it.

## Fields
`

// TestDocs keeps docs/manifest.md current: every field of every type, in the order of the types.
func TestDocs(t *testing.T) {
	t.Parallel()
	d := docs{comments: comments(t), done: map[reflect.Type]bool{}}
	d.WriteString(docsIntro)
	d.typ(reflect.TypeFor[KubeOneCluster](), "KubeOneCluster", "yes")
	for _, problem := range d.problems {
		t.Error(problem)
	}
	golden.Check(t, docsFile, d.String())
}

// docs is the text as far as it is written.
type docs struct {
	strings.Builder
	comments map[string]string // by "Type" and "Type.Field"
	done     map[reflect.Type]bool
	problems []string
}

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
	fmt.Fprintf(d, "\n### %s\n\n%s\n", title, wrapped(d.comments[t.Name()], 120))
	var later []func()
	if t.NumField() > 0 {
		d.WriteString("\n| field | type | default | carried out | meaning |\n|---|---|---|---|---|\n")
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		comment := d.comment(t, f)
		inside := d.row(f, comment, carried)
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
func (d *docs) row(f reflect.StructField, comment, carried string) string {
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
		carried = "no"
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
	fmt.Fprintf(d, "| `%s` | %s | %s | %s | %s |\n", JSONName(f), typeName(f.Type), value, carried,
		strings.ReplaceAll(sentence(comment), "|", `\|`))
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
	comment = strings.TrimPrefix(strings.TrimSpace(comment), "is ")
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
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "any fields"
		}
		return "map to " + typeName(t.Elem())
	case reflect.Struct:
		if t.NumField() == 0 {
			return "`{}`"
		}
		return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true, false"
	default:
		return "number"
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
