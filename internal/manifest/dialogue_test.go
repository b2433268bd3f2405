package manifest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kubeone/internal/manifest"
	"kubeone/internal/testutil/golden"
)

// TestProblems loads the files of each dialogue and compares the problems. A dialogue is a txtar archive with input
// files and the expected problems. tf.json or tfdir is the Terraform output, on a machine without Terraform.
// credentials.yaml is the credentials file, and readable.yaml one that other users can read.
func TestProblems(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("dialogues: %v, %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			dialogue(t, path)
		})
	}
}

func dialogue(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := manifest.Options{
		ManifestPath: filepath.Join(dir, "kubeone.yaml"), Getenv: func(string) string { return "" },
		RunTerraform: func(context.Context, string) ([]byte, error) { return nil, manifest.ErrNoTerraform },
	}
	expected := -1
	for i, f := range archive.Files {
		switch f.Name {
		case "problems":
			expected = i
			continue
		case "tf.json":
			o.TerraformPath = filepath.Join(dir, f.Name)
		case "credentials.yaml", "readable.yaml":
			o.CredentialsPath = filepath.Join(dir, f.Name)
		}
		if strings.HasPrefix(f.Name, "tfdir/") {
			o.TerraformPath = filepath.Join(dir, "tfdir")
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
		if f.Name == "readable.yaml" {
			if err := os.Chmod(o.CredentialsPath, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := strings.ReplaceAll(said(t, o), dir+"/", "")
	if expected < 0 {
		t.Fatal("the dialogue has no file named problems")
	}
	if golden.Update() {
		archive.Files[expected].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[expected].Data), got); diff != "" {
		t.Errorf("problems (-want +got), go test -update rewrites them:\n%s", diff)
	}
}

// said returns everything that Load reports, one problem a line.
func said(t *testing.T, o manifest.Options) string {
	t.Helper()
	loaded, err := manifest.Load(t.Context(), o)
	list := loaded.Warnings
	if problems := (*manifest.Problems)(nil); errors.As(err, &problems) {
		list = problems.List
	} else if err != nil {
		t.Fatalf("error is a %T, not a *Problems: %v", err, err)
	}
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.String() + "\n")
	}
	for _, path := range loaded.Cluster.NotCarriedOut {
		b.WriteString("not carried out: " + path + "\n")
	}
	return b.String()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
