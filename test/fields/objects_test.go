package fields

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/manifest"
	"kubeone/internal/manifest/objects"
)

// manifests is the number of generated manifests; a release needs 10,000.
var manifests = flag.Int("manifests", 500, "the number of generated manifests")

// TestManifestsAndObjectsAreTheSame writes generated manifests as objects. The objects mean the same cluster, and
// become the same manifest again.
func TestManifestsAndObjectsAreTheSame(t *testing.T) {
	t.Parallel()
	want := *manifests
	if testing.Short() {
		want = min(want, 200)
	}
	changes := byPath[alteration](t, "changes.yaml")
	paths := sortedKeys(changes)
	dir := writeSurroundings(t)
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for done := 0; done < want; {
		m := manifestWith(t, alteration{}, "", false)
		for range 1 + random.IntN(8) {
			path := paths[random.IntN(len(paths))]
			alter(t, m, changes[path], path)
		}
		text, err := yaml.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := loadText(t, dir, text)
		if err != nil {
			refused++
			continue
		}
		if problem := differsAsObjects(t, dir, loaded); problem != "" {
			t.Fatalf("manifest:\n%s\n%s", text, problem)
		}
		done++
	}
	t.Logf("%d manifests; %d generated ones were refused", want, refused)
}

// alter makes a change in a manifest, and skips what does not fit.
func alter(t *testing.T, m tree, change alteration, path string) {
	t.Helper()
	for _, name := range sortedKeys(change.Given) {
		_ = setField(m, name, change.Given[name])
	}
	for _, name := range change.Without {
		_ = setField(m, name, nil)
	}
	if change.At != "" {
		path = change.At
	}
	_ = setField(m, path, change.Value)
}

func loadText(t *testing.T, dir string, text []byte) (manifest.Loaded, error) {
	t.Helper()
	return manifest.Load(t.Context(), manifest.Options{
		ManifestReader: bytes.NewReader(text), ManifestPath: filepath.Join(dir, "kubeone.yaml"), Home: dir,
		Getenv: func(string) string { return "" },
	})
}

// differsAsObjects writes a manifest as objects, and returns how they differ from it.
func differsAsObjects(t *testing.T, dir string, before manifest.Loaded) string {
	t.Helper()
	written, err := objects.Of(before.Written)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := written.Documents()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, document := range documents {
		part, err := yaml.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s", part)
	}
	after, err := loadText(t, dir, []byte(text.String()))
	if err != nil {
		return fmt.Sprintf("as objects:\n%s\n%s", &text, err)
	}
	after.Cluster.Objects = false // what it is made of
	for _, diff := range []string{
		cmp.Diff(before.Cluster, after.Cluster, cmpopts.EquateEmpty()),
		cmp.Diff(before.Secrets, after.Secrets, cmpopts.EquateEmpty()),
		cmp.Diff(normalForm(t, before.Written), normalForm(t, after.Written)),
	} {
		if diff != "" {
			return fmt.Sprintf("as objects:\n%s\n%s", &text, diff)
		}
	}
	return ""
}

// normalForm returns a manifest as JSON, with taints in order.
func normalForm(t *testing.T, m *v1beta2.KubeOneCluster) string {
	t.Helper()
	c, err := objects.Clone(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, hosts := range [][]v1beta2.HostConfig{c.ControlPlane.Hosts, c.StaticWorkers.Hosts} {
		for i := range hosts {
			slices.SortFunc(hosts[i].Taints, func(a, b v1beta2.Taint) int { return strings.Compare(a.Key, b.Key) })
		}
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
