package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"kubeone/examples"
	"kubeone/internal/manifest"
)

// FuzzLoad: whatever the files hold, Load returns, its error is a *Problems with something in it, and what it accepts
// it accepts again from its own text, with the same digest.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"minimal.yaml", "full.yaml"} {
		text, err := examples.Files.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "")
	}
	paths, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		files := map[string]string{}
		for _, file := range archive.Files {
			files[file.Name] = string(file.Data)
		}
		f.Add(files["kubeone.yaml"], files["tf.json"])
	}
	f.Fuzz(func(t *testing.T, text, tf string) {
		dir := t.TempDir()
		o := manifest.Options{ManifestPath: filepath.Join(dir, "m.yaml"), ManifestReader: strings.NewReader(text)}
		if tf != "" {
			o.TerraformPath = filepath.Join(dir, "tf.json")
			if err := os.WriteFile(o.TerraformPath, []byte(tf), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		loaded, err := manifest.Load(t.Context(), o)
		if err != nil {
			if problems := (*manifest.Problems)(nil); !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		again, err := manifest.Load(t.Context(), manifest.Options{
			ManifestPath:   o.ManifestPath,
			ManifestReader: strings.NewReader(string(loaded.ManifestText)),
		})
		if err != nil {
			t.Fatalf("its own text is refused: %v\n%s", err, loaded.ManifestText)
		}
		if again.Cluster.Digest != loaded.Cluster.Digest {
			t.Fatalf("its own text is another cluster:\n%s\n%s", loaded.ManifestText, again.ManifestText)
		}
	})
}
