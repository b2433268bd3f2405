package components

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// sampleSet returns a set with tiny files and one image.
func sampleSet(t *testing.T) *Set {
	t.Helper()
	dir := t.TempDir()
	set := &Set{KubernetesVersion: "1.36.3"}
	for _, url := range []string{
		"dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet",
		"github.com/opencontainers/runc/releases/download/v1.5.2/runc.amd64",
		"github.com/containerd/containerd/releases/download/v2.4.2/containerd-2.4.2-linux-amd64.tar.gz",
		"github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz",
	} {
		local := filepath.Join(dir, filepath.Base(url))
		if err := os.WriteFile(local, []byte(filepath.Base(url)), 0o755); err != nil {
			t.Fatal(err)
		}
		set.Files = append(set.Files, File{url, local})
	}
	builder := &Builder{Cache: NewCache(t.TempDir())}
	layout, err := builder.writeImage(t.Context(), imageSpec{
		Name: "coredns/coredns", Tag: "v1.14.2", Entrypoint: []string{"/coredns"},
		Layers: []layerSpec{{Files: map[string]string{"coredns": filepath.Join(dir, "kubelet")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	set.Images = []Image{{"coredns/coredns", "v1.14.2", layout}}
	return set
}

func serveSample(t *testing.T) *httptest.Server {
	t.Helper()
	mirror, err := NewMirror(sampleSet(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mirror)
	t.Cleanup(server.Close)
	return server
}

func fetchURL(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestMirrorLayout(t *testing.T) {
	server := serveSample(t)
	const (
		github     = "/github.com/"
		containerd = "containerd-2.4.2-linux-amd64.tar.gz"
		cni        = "cni-plugins-linux-amd64-v1.9.1.tgz"
	)
	for path, want := range map[string]string{
		"/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet":               "kubelet",
		"/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet.sha256":        sha256Hex("kubelet"),
		github + "opencontainers/runc/releases/download/v1.5.2/runc.amd64": "runc.amd64",
		github + "opencontainers/runc/releases/download/v1.5.2/runc.sha256sum": sha256Hex("runc.amd64") +
			" *runc.amd64\n",
		github + "opencontainers/runc/releases/download/v1.5.2/runc.arm64":         "",
		github + "opencontainers/runc/releases/download/v1.5.1/runc.sha256sum":     "",
		github + "kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl.tgz":  "",
		github + "containerd/containerd/releases/download/v2.4.2/other.sha256sum":  "",
		"/release/v1.36.3/bin/linux/amd64/kubelet":                                 "",
		github + "containerd/containerd/releases/download/v2.4.2/../../etc/passwd": "",
		github + "containerd/containerd/releases/download/v2.4.2/" + containerd + ".sha256sum": sha256Hex(containerd) +
			"  " + containerd + "\n",
		github + "containernetworking/plugins/releases/download/v1.9.1/" + cni + ".sha256": sha256Hex(cni) +
			"  " + cni + "\n",
	} {
		status, body := fetchURL(t, server.URL+path)
		switch {
		case want == "" && status != http.StatusNotFound:
			t.Errorf("%s: status %d, want 404", path, status)
		case want != "" && (status != http.StatusOK || body != want):
			t.Errorf("%s: %d %q, want %q", path, status, body, want)
		}
	}
}

func TestMirrorIsRegistry(t *testing.T) {
	server := serveSample(t)
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host+"/coredns/coredns:v1.14.2", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || strings.Join(config.Config.Entrypoint, " ") != "/coredns" {
		t.Errorf("configuration: %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		t.Error(err)
	}
}

func TestMirrorIsReadOnly(t *testing.T) {
	server := serveSample(t)
	request, err := http.NewRequest(http.MethodPut, server.URL+"/v2/coredns/coredns/manifests/v2",
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d", answer.StatusCode)
	}
}
