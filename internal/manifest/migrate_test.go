package manifest_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kubeone/examples"
	"kubeone/internal/golden"
	"kubeone/internal/manifest"
)

// TestMigrate migrates each dialogue's manifest, and compares the result, or the problems, as a person reads them.
func TestMigrate(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/migrate/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("dialogues: %v, %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[0].Name != "kubeone.yaml" {
				t.Fatal("a dialogue has kubeone.yaml, and its result or its problems")
			}
			got, err := migrated(string(archive.Files[0].Data))
			expected := &archive.Files[1]
			if (err != nil) != (expected.Name == "problems") {
				t.Fatalf("the dialogue has a file %s, and the error is %v", expected.Name, err)
			}
			if err != nil {
				got = err.Error() + "\n"
			} else if again, err := migrated(got); err != nil || again != got {
				t.Errorf("migrated again it is %q, %v", again, err)
			}
			if golden.Update() {
				expected.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(expected.Data), got); diff != "" {
				t.Errorf("(-want +got), go test -update rewrites it:\n%s", diff)
			}
		})
	}
}

func migrated(text string) (string, error) {
	out, err := manifest.Migrate(manifest.Options{
		ManifestPath: "kubeone.yaml", ManifestReader: strings.NewReader(text),
	})
	return string(out), err
}

// TestMigratedExamplesMeanTheSame: a field that both formats have is the same afterwards.
func TestMigratedExamplesMeanTheSame(t *testing.T) {
	t.Parallel()
	paths, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	dir := unpacked(t)
	for _, path := range paths {
		text, err := examples.Files.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after, err := migrated(strings.Replace(string(text), "io/v1beta2", "io/v1beta3", 1))
		if err != nil {
			t.Fatal(err)
		}
		show := func(text string) string {
			loaded, err := manifest.Load(t.Context(), manifest.Options{
				ManifestPath: filepath.Join(dir, path), ManifestReader: strings.NewReader(text),
			})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return string(loaded.ManifestText)
		}
		want := show(string(text))
		if !strings.Contains(want, "deviceOwnershipFromSecurityContext") {
			want = strings.Replace(want, "\ncontrolPlane:",
				"\ncontainerRuntime:\n  containerd:\n    deviceOwnershipFromSecurityContext: true\ncontrolPlane:", 1)
		}
		if diff := cmp.Diff(want, show(after)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", path, diff)
		}
	}
}

// FuzzMigrate: whatever the file holds, Migrate returns, its error is a *Problems with something in it, and its result
// needs no migration.
func FuzzMigrate(f *testing.F) {
	for _, pattern := range []string{"testdata/migrate/*.txtar", "testdata/problems/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range archive.Files {
				if file.Name == "kubeone.yaml" {
					f.Add(strings.Replace(string(file.Data), "io/v1beta2", "io/v1beta3", 1))
				}
			}
		}
	}
	merges := "apiVersion: kubeone.k8c.io/v1beta3\nkind: KubeOneCluster\nx0: &x0 {a: 1}\n"
	for i := 'a'; i < 'u'; i++ {
		merges += strings.NewReplacer("NEW", string(i+1), "OLD", string(i)).Replace(
			"xNEW: &xNEW {<<: [*xOLD, *xOLD, *xOLD, *xOLD, *xOLD, *xOLD, *xOLD, *xOLD, *xOLD, *xOLD]}\n")
	}
	f.Add(strings.ReplaceAll(merges, "x0", "xa") + "<<: *xu\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, err := migrated(text)
		if err != nil {
			problems := (*manifest.Problems)(nil)
			if !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("error: %v", err)
			}
			return
		}
		if again, err := migrated(out); err != nil || again != out {
			t.Errorf("%s\nmigrated again:\n%s\n%v", out, again, err)
		}
	})
}
