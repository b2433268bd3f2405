package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// pack returns the archive of a chart with these files, below the folder "web" unless a name begins with "/" or "..".
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for name, text := range files {
		if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "..") {
			name = "web/" + name
		}
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const metadata = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

func chartFiles() map[string]string {
	return map[string]string{
		"Chart.yaml":  metadata,
		"values.yaml": "replicas: 1\ntier: front\n",
		"values.schema.json": `{"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 1}},
			"required": ["replicas"]}`,
		"crds/widgets.yaml": "apiVersion: apiextensions.k8s.io/v1\n" +
			"kind: CustomResourceDefinition\nmetadata: {name: w}\n",
		"templates/_helpers.tpl": `{{ define "name" }}{{ .Release.Name }}-web{{ end }}`,
		"templates/NOTES.txt":    "Have fun.",
		"templates/test.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
		"templates/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ include "name" . }}, namespace: {{ .Release.Namespace }}}
data:
  replicas: {{ .Values.replicas | quote }}
  tier: {{ .Values.tier }}
  version: {{ .Capabilities.KubeVersion.Version }}
  password: {{ (lookup "v1" "Secret" .Release.Namespace "web").data | default (dict "p" "new") | toJson | quote }}
`,
	}
}

func renderChart(t *testing.T, r Release, files map[string]string) (string, error) {
	t.Helper()
	c, err := Load(pack(t, files))
	if err != nil {
		return "", err
	}
	r.Name, r.Namespace, r.KubernetesVersion = "r", "apps", "1.36.3"
	objects, err := c.Render(t.Context(), r)
	var out strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text))
	}
	return out.String(), err
}

func TestAChartIsRendered(t *testing.T) {
	t.Parallel()
	lookup := func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if fmt.Sprint(apiVersion, kind, namespace, name) != "v1Secretappsweb" {
			return nil, nil
		}
		return map[string]any{"data": map[string]any{"p": "kept"}}, nil
	}
	got, err := renderChart(t, Release{Values: map[string]any{"replicas": 3}, Lookup: lookup}, chartFiles())
	if err != nil {
		t.Fatal(err)
	}
	want := `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: w
---
apiVersion: v1
data:
  password: '{"p":"kept"}'
  replicas: "3"
  tier: front
  version: v1.36.3
kind: ConfigMap
metadata:
  name: r-web
  namespace: apps
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again, err := renderChart(t, Release{Values: map[string]any{"replicas": 3}}, chartFiles()); err != nil ||
		!strings.Contains(again, `{"p":"new"}`) {
		t.Errorf("%v\n%s", err, again)
	}
}

// A chart finds what the cluster serves, like in the cluster, and nothing else.
func TestAChartFindsTheServedAPIVersions(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Chart.yaml": metadata, "templates/found.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data:
{{- range list "apps/v1" "x.example/v1" "x.example/v1/Widget" }}
  {{ . | replace "/" "-" }}: {{ $.Capabilities.APIVersions.Has . | quote }}
{{- end }}
`}
	for name, c := range map[string]struct {
		served []string
		want   string
	}{
		"unknown": {nil, "apps-v1: \"true\"\n  x.example-v1: \"false\"\n  x.example-v1-Widget: \"false\"\n"},
		"served": {[]string{"x.example/v1", "x.example/v1/Widget"},
			"apps-v1: \"false\"\n  x.example-v1: \"true\"\n  x.example-v1-Widget: \"true\"\n"},
	} {
		got, err := renderChart(t, Release{APIVersions: c.served}, files)
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestChartsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]string)
		values map[string]any
		says   string
	}{
		"no metadata":      {func(f map[string]string) { delete(f, "Chart.yaml") }, nil, "no Chart.yaml found"},
		"no version":       {func(f map[string]string) { f["Chart.yaml"] = "apiVersion: v2\nname: web\n" }, nil, "version"},
		"path that climbs": {func(f map[string]string) { f["../../etc/passwd"] = "x" }, nil, "parent directory"},
		"absolute path":    {func(f map[string]string) { f["/etc/passwd"] = "a: 1" }, nil, ""},
		"syntax":           {func(f map[string]string) { f["templates/bad.yaml"] = "{{ if }}" }, nil, "templates/bad.yaml:1"},
		"values": {func(map[string]string) {}, map[string]any{"replicas": "many"},
			"the values do not match the schema"},
		"schema elsewhere": {func(f map[string]string) {
			f["values.schema.json"] = `{"$ref": "http://127.0.0.1:9/schema.json"}`
		}, nil, "values.schema.json"},
		"schema file": {func(f map[string]string) {
			f["values.schema.json"] = `{"$ref": "file:///etc/passwd"}`
		}, nil, "values.schema.json"},
		"no object": {func(f map[string]string) { f["templates/bad.yaml"] = "a: 1" }, nil, "apiVersion is missing"},
		"DNS": {func(f map[string]string) {
			f["templates/bad.yaml"] = `{{ if getHostByName "localhost" }}a: 1{{ end }}`
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := chartFiles()
			c.change(files)
			got, err := renderChart(t, Release{Values: c.values}, files)
			if c.says == "" { // allowed, without effect
				if err != nil || strings.Contains(got, "a: 1") {
					t.Errorf("%v\n%s", err, got)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Load(make([]byte, MaxArchiveBytes+1)); err == nil {
		t.Error("a large archive is loaded")
	}
}
