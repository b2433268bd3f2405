package apply

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

// Only steps that write credentials get them, in one file.
func TestOnlyStepsThatWriteCredentialsGetThem(t *testing.T) {
	t.Parallel()
	r := &Run{Credentials: &desired.Credentials{
		Registries: map[string]desired.RegistryAuth{"r.example.com": {Auth: "x"}}, HTTPProxy: "http://u:p@proxy",
	}}
	for kind, brought := range map[step.Kind]bool{
		step.Prepare: true, step.Reconfigure: true, step.UpgradeWorker: true, step.UpgradeControlPlane: true,
		step.Images: false, step.ResetHost: false,
	} {
		files, err := r.secretsFor(t.Context(), plan.Step{Intent: step.Intent{Kind: kind}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		if brought {
			want = map[string]string{
				"kubeone-registry-r.example.com.toml": componentconfig.CredentialFiles(
					*r.Credentials)[componentconfig.CredentialsDir+
					"/kubeone-registry-r.example.com.toml"],
				"proxy.env": "HTTP_PROXY='http://u:p@proxy'\n",
			}
		}
		if diff := cmp.Diff(want, unpacked(t, files[script.CredentialsFile])); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// unpacked returns the files in a tar.
func unpacked(t *testing.T, content []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || header.Mode != 0o600 {
			t.Fatal(header.Name, header.Mode, err)
		}
		out[header.Name] = string(text)
	}
}

// Without credentials, no file is sent.
func TestNoCredentialsAreNoFile(t *testing.T) {
	t.Parallel()
	for _, c := range []*desired.Credentials{nil, {}, {Registries: map[string]desired.RegistryAuth{}}} {
		files, err := (&Run{Credentials: c}).secretsFor(t.Context(), plan.Step{Intent: step.Intent{Kind: step.Prepare}})
		if err != nil || len(files) != 0 {
			t.Errorf("%d files (%v)", len(files), err)
		}
	}
}
