package chart

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

func folder(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestPackedFoldersAreCharts(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": "a: 1\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		".helmignore":      "*.bak\n", "templates/a.yaml.bak": "{{",
	}
	archive, err := Pack("web", folder(files))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack("web", folder(files))
	if err != nil || !bytes.Equal(archive, again) {
		t.Errorf("the same folder has another archive, %v", err)
	}
	c, err := Load(archive)
	if err != nil || c.Name != "web" || c.Version != "1.0.0" {
		t.Fatalf("%+v, %v", c, err)
	}
	objects, err := c.Render(t.Context(), Release{Name: "web", Namespace: "web", KubernetesVersion: "1.36.3"})
	if err != nil || len(objects) != 1 {
		t.Errorf("%v, %v", objects, err)
	}
	if _, err := Pack("web", folder(map[string]string{"big": strings.Repeat("a", MaxArchiveBytes+1)})); err == nil {
		t.Error("a folder that is too large is packed")
	}
}

func TestSourceDigests(t *testing.T) {
	t.Parallel()
	s := Source{RepoURL: "https://charts.example.com", Name: "web", Version: "1.0.0"}
	same, other, local := s, s, s
	same.Password, same.Insecure = "secret", true
	other.Version = "1.0.1"
	local.Archive = []byte("a")
	if s.Digest() != same.Digest() || s.Digest() == other.Digest() || s.Digest() == local.Digest() {
		t.Error(s.Digest(), same.Digest(), other.Digest(), local.Digest())
	}
	if len(s.Digest()) > 63 {
		t.Errorf("%s does not fit into a label", s.Digest())
	}
	if a, b := ValuesDigest(nil), ValuesDigest(map[string]any{}); a != b {
		t.Errorf("no values have the digests %s and %s", a, b)
	}
	if a, b := ValuesDigest(map[string]any{"a": int64(1)}), ValuesDigest(map[string]any{"a": float64(1)}); a != b {
		t.Errorf("a number has the digests %s and %s", a, b)
	}
}

func TestSourcesAreNamed(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Source{
		"folder ./web": {Archive: []byte{1}, Folder: "./web"},
		"web 1.0.0 from https://charts.example.com":  {RepoURL: "https://charts.example.com", Name: "web", Version: "1.0.0"},
		"web from oci://registry.example.com/a/web":  {URL: "oci://registry.example.com/a/web"},
		"https://u:xxxxx@charts.example.com/web.tgz": {URL: "https://u:p@charts.example.com/web.tgz"},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
