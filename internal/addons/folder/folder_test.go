package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kubeone/internal/addons/resources"
)

func manifest(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestAddonsOfAFolder(t *testing.T) {
	t.Parallel()
	found, err := Read(fstest.MapFS{
		"zeta/b.yml":         manifest("b"),
		"zeta/a.yaml":        manifest("a"),
		"zeta/README.md":     manifest("text"),
		"zeta/deep/x.yaml":   manifest("not read"),
		"alpha/object.json":  manifest("{}"),
		"root.yaml":          manifest("r"),
		"empty/README.md":    manifest("text"),
		".git/config.yaml":   manifest("hidden"),
		"notes/archive.yaml": {Mode: os.ModeDir},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Addon{
		{Name: "alpha", Files: []File{{"alpha/object.json", "{}"}}},
		{Name: "zeta", Files: []File{{"zeta/a.yaml", "a"}, {"zeta/b.yml", "b"}}},
		{Name: RootName, Files: []File{{"root.yaml", "r"}}},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files fstest.MapFS
		says  string
	}{
		"name":        {fstest.MapFS{"My_Addon/a.yaml": manifest("")}, `"My_Addon" is not a valid addon name`},
		"large file":  {fstest.MapFS{"a/a.yaml": manifest(strings.Repeat("x", maxFileBytes+1))}, "larger than 8 MiB"},
		"device":      {fstest.MapFS{"a/a.yaml": {Mode: os.ModeNamedPipe}}, "not a regular file"},
		"root itself": {fstest.MapFS{"root/a.yaml": manifest(""), "a.yaml": manifest("")}, "cannot be used together"},
	} {
		if _, err := Read(c.files); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinksOutOfTheFolderAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if found, err := Read(root.FS()); err == nil {
		t.Errorf("read %v", found)
	}
}

func render(t *testing.T, a Addon, v Values) string {
	t.Helper()
	objects, err := Render(a, v)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text))
	}
	return out.String()
}

func TestTemplatesAreFilled(t *testing.T) {
	t.Parallel()
	got := render(t, Addon{
		Name: "web", Params: map[string]string{"size": "3"},
		Files: []File{{"web/a.yaml", `
{{- if eq .Params.mode "full" }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .CCMClusterName | upper | lower }}-config
data:
  image: {{ Registry "docker.io" }}/nginx
  size: {{ .Params.size | quote }}
  secret: {{ required "token is missing" .CustomCredentials.token | b64enc }}
  version: {{ .Config.Kubernetes }}
  unset: "{{ .Params.unset }}"
{{- end }}
---
# only a comment
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: one, labels: {app: web}}}
- {apiVersion: v1, kind: Service, metadata: {name: two, namespace: web}}
`}},
	}, Values{
		Config: struct{ Kubernetes string }{"1.36.3"}, CCMClusterName: "prod", OverwriteRegistry: "mirror.example:5000",
		Params: map[string]string{"mode": "full", "size": "1"}, CustomCredentials: map[string]string{"token": "t0p"},
	})
	want := `---
apiVersion: v1
data:
  image: mirror.example:5000/nginx
  secret: dDBw
  size: "3"
  unset: ""
  version: 1.36.3
kind: ConfigMap
metadata:
  labels:
    kubeone.io/addon: web
  name: prod-config
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app: web
    kubeone.io/addon: web
  name: one
---
apiVersion: v1
kind: Service
metadata:
  labels:
    kubeone.io/addon: web
  name: two
  namespace: web
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutTemplatingFilesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	got := render(t, Addon{
		Name: "raw", DisableTemplating: true,
		Files: []File{{"raw/a.yaml", configMap + "data: {rule: '{{ $labels.pod }}'}\n"}},
	}, Values{})
	if !strings.Contains(got, "{{ $labels.pod }}") {
		t.Error(got)
	}
}

func TestMistakesNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		line int
		says string
	}{
		"syntax":      {"a: 1\n{{ if }}", 2, "missing value for if"},
		"function":    {"{{ lookup }}", 1, `function "lookup" not defined`},
		"field":       {"a: 1\nb: 2\nc: {{ .InternalImages.Get }}", 3, "can't evaluate field InternalImages"},
		"required":    {`{{ required "set params.token" .Params.token }}`, 1, "set params.token"},
		"environment": {`{{ env "HOME" }}`, 1, `function "env" not defined`},
		"chance":      {configMap + "data: {a: {{ randAlphaNum 8 }}}", 0, "renders another text each time"},
		"loop": {
			`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, 1, "exceeded maximum template depth",
		},
		"many":           {`{{ range until 100001 }}x{{ end }}`, 1, "more than 100000 steps"},
		"long":           {`{{ repeat 1000000000 "x" }}`, 1, "repeat: the count must be"},
		"large":          {`{{ range until 100000 }}{{ repeat 1000 "x" }}{{ end }}`, 0, "renders more than 32 MiB"},
		"no kind":        {"apiVersion: v1\nmetadata: {name: a}", 0, "document 1: kind is missing"},
		"no name":        {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}", 0, "generateName is not supported"},
		"key twice":      {configMap + "kind: Secret", 0, `key "kind" already set`},
		"no YAML":        {configMap + "---\n[", 0, "document 2: "},
		"item in a list": {"apiVersion: v1\nkind: List\nitems: [{kind: Pod}]", 0, "items[0]: apiVersion is missing"},
		"too many": {
			`{{ range $i := until 5001 }}{apiVersion: v1, kind: Pod, metadata: {name: p{{ $i }}}}` + "\n---\n{{ end }}",
			0, "more than 5000 objects",
		},
		"namespace digit": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 1}", 0, "is not a text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Render(Addon{Name: "a", Files: []File{{"a/x.yaml", c.text}}}, Values{})
			var mistake *resources.FileError
			if !errors.As(err, &mistake) || mistake.Path != "a/x.yaml" || mistake.Line != c.line ||
				!strings.Contains(mistake.Error(), c.says) {
				t.Errorf("line %d, %.300v", c.line, err)
			}
		})
	}
}
