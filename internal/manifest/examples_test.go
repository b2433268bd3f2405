package manifest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kubeone/examples"
	"kubeone/internal/manifest"
)

// unpacked writes the examples to a directory, as users have them.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.Files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExamplesLoadWithoutProblems(t *testing.T) {
	t.Parallel()
	dir := unpacked(t)
	paths, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			o := manifest.Options{ManifestPath: filepath.Join(dir, path)}
			if path == "terraform.yaml" {
				o.TerraformPath = filepath.Join(dir, "terraform", "tf.json")
			}
			loaded, err := manifest.Load(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range loaded.Warnings {
				t.Errorf("warning: %s", w)
			}
			for _, p := range loaded.Cluster.NotCarriedOut {
				t.Errorf("not carried out: %s", p)
			}
		})
	}
}
