package manifest_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/manifest"
)

const withRegistries = `containerRuntime:
  containerd:
    registries:
      a.example.com: {auth: {username: manifest, password: hunter2}}
      b.example.com: {auth: {username: manifest, password: hunter2}}
`

const credentialsOfA = `registriesAuth: |
  apiVersion: kubeone.k8c.io/v1beta2
  kind: ContainerRuntimeContainerd
  registries:
    a.example.com:
      auth:
        username: file
        password: 007
    new.example.com:
      auth: {identityToken: t0ken}
`

func loadWith(t *testing.T, text, credentials string) (manifest.Loaded, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubeone.yaml"), []byte(text))
	o := manifest.Options{ManifestPath: filepath.Join(dir, "kubeone.yaml")}
	if credentials != "" {
		o.CredentialsPath = filepath.Join(dir, "credentials.yaml")
		write(t, o.CredentialsPath, []byte(credentials))
	}
	return manifest.Load(t.Context(), o)
}

// The file takes precedence over the manifest. Its values appear nowhere in the stored manifest.
func TestCredentialsOfAFile(t *testing.T) {
	t.Parallel()
	plain, err := loadWith(t, demo+withRegistries, "")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loadWith(t, demo+withRegistries, credentialsOfA)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1beta2.ContainerdRegistryAuthConfig{
		"a.example.com":   {Username: "file", Password: "007"},
		"b.example.com":   {Username: "manifest", Password: "hunter2"},
		"new.example.com": {IdentityToken: "t0ken"},
	}
	if diff := cmp.Diff(want, loaded.Secrets.Registries); diff != "" || !loaded.Secrets.AllRegistries {
		t.Error(diff, loaded.Secrets.AllRegistries)
	}
	if diff := cmp.Diff(plain.Cluster, loaded.Cluster); diff != "" {
		t.Errorf("the cluster is another one with credentials:\n%s", diff)
	}
	for _, secret := range []string{"hunter2", "007", "t0ken"} {
		if strings.Contains(string(loaded.ManifestText), secret) {
			t.Errorf("the manifest's text has %s", secret)
		}
	}
}

// Without a file and without any in the manifest, the credentials of hosts are unknown.
func TestWhoseCredentialsAreKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, credentials string
		all               bool
	}{
		"nothing":         {demo, "", false},
		"a file":          {demo, "{}\n", true},
		"an empty file":   {demo, "# nothing\n", true},
		"in the manifest": {demo + withRegistries, "", true},
	} {
		loaded, err := loadWith(t, c.text, c.credentials)
		if err != nil || loaded.Secrets.AllRegistries != c.all {
			t.Errorf("%s: known: %t (%v), want %t", name, loaded.Secrets.AllRegistries, err, c.all)
		}
	}
}

func TestAFileWithCredentialsThatIsNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubeone.yaml"), []byte(demo))
	for _, path := range []string{filepath.Join(dir, "none.yaml"), dir} {
		_, err := manifest.Load(t.Context(),
			manifest.Options{ManifestPath: filepath.Join(dir, "kubeone.yaml"), CredentialsPath: path})
		var problems *manifest.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), "read the credentials") {
			t.Errorf("%s: %v", path, err)
		}
		if path != dir && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAFileWithCredentialsIsBounded(t *testing.T) {
	t.Parallel()
	if _, err := loadWith(t, demo, strings.Repeat("# long\n", 1<<18)); err == nil ||
		!strings.Contains(err.Error(), "larger than 1024 KiB") {
		t.Error(err)
	}
}
