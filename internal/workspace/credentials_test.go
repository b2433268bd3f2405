package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// The hosts' credentials come from the file and the manifest, and a support bundle must contain none of either.
func TestCredentialsOfAWorkspace(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText+`proxy: {http: "http://user:pa%24s@proxy:3128"}
`)
	o.Credentials = filepath.Join(t.TempDir(), "credentials.yaml")
	if err := os.WriteFile(o.Credentials, []byte(`registriesAuth: |
  apiVersion: kubeone.k8c.io/v1beta2
  kind: ContainerRuntimeContainerd
  registries:
    a.example.com: {auth: {auth: dTpodW50ZXIy}}
    b.example.com: {auth: {username: u, password: hunter3}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := desired.Credentials{
		HTTPProxy: "http://user:pa%24s@proxy:3128",
		Registries: map[string]desired.RegistryAuth{
			"a.example.com": {Auth: "dTpodW50ZXIy"}, "b.example.com": {Username: "u", Password: "hunter3"},
		},
	}
	if diff := cmp.Diff(want, *w.hostCredentials()); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"dTpodW50ZXIy", "hunter2", "hunter3", "pa$s"} {
		if !slices.Contains(w.secretValues(), secret) {
			t.Errorf("%s would stay in a bundle", secret)
		}
	}
	if !w.want.Proxy.HasAuth || w.want.Proxy.HTTP != "http://proxy:3128" {
		t.Errorf("the proxy is %+v", w.want.Proxy)
	}
}

// Without a credentials file, hosts keep their registry credentials; those of proxies come from the manifest.
func TestWithoutAFileRegistriesAreNotKnown(t *testing.T) {
	t.Parallel()
	w, err := Open(t.Context(), options(t, manifestText))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if c := w.hostCredentials(); c == nil || c.Registries != nil || c.HTTPProxy != "" {
		t.Errorf("known are %+v", *c)
	}
}
