package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubeone/internal/release"
)

// mirror serves every binary except crictl and every image of Kubernetes 1.36.3, all tiny.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		content := strings.TrimSuffix(req.URL.Path, ".sha256")
		switch {
		case strings.HasPrefix(req.URL.Path, "/v2/"):
			images.ServeHTTP(w, req)
		case strings.Contains(req.URL.Path, "crictl"):
			http.NotFound(w, req)
		case strings.HasSuffix(req.URL.Path, "/runc.sha256sum"):
			file := strings.TrimSuffix(req.URL.Path, "sha256sum") + "amd64"
			_, _ = fmt.Fprintf(w, "%x  runc.amd64\n", sha256.Sum256([]byte(file)))
		case strings.Contains(req.URL.Path, ".sha256"):
			_, _ = fmt.Fprintf(w, "%x\n", sha256.Sum256([]byte(strings.TrimSuffix(content, ".sha256sum"))))
		default:
			_, _ = io.WriteString(w, content)
		}
	}))
	t.Cleanup(server.Close)
	for _, i := range []string{
		"kube-apiserver:v1.36.3", "kube-controller-manager:v1.36.3", "kube-scheduler:v1.36.3", "kube-proxy:v1.36.3",
		"etcd:3.6.8-0", "pause:3.10.2", "coredns/coredns:v1.14.2", "flannel-io/flannel:v0.26.7",
		"metrics-server/metrics-server:v0.9.0",
	} {
		pushTiny(t, strings.TrimPrefix(server.URL, "http://")+"/"+i)
	}
	return server
}

func pushTiny(t *testing.T, image string) {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
}

// runBundle runs "kubeone bundle ARGS".
func runBundle(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newBundleCommand(strings.NewReader(""), &stdout, &stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(context.WithoutCancel(t.Context()))
	return stdout.String(), stderr.String(), err
}

func TestBundleCreateThenInspect(t *testing.T) {
	t.Parallel()
	server := mirror(t)
	file := filepath.Join(t.TempDir(), "bundle.tar")
	out, progress, err := runBundle(t, "create", "-f", file, "--kubernetes-version", "v1.36.3",
		"--mirror", server.URL, "--insecure-mirror", "--trust-source",
		"--overwrite-registry", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	if want := file + ": Kubernetes 1.36.3 for linux/amd64, CNI flannel: 7 binaries, 9 images, "; len(lines) != 4 ||
		!strings.HasPrefix(lines[0], want) || lines[1] != fmt.Sprintf("sha256: %x", sha256.Sum256(content)) ||
		!strings.HasPrefix(lines[2], "16 of 16 artifacts could not be checked ") {
		t.Errorf("result %q, want what it is, its digest, and a note", out)
	}
	if lines := strings.Split(strings.TrimSpace(progress), "\n"); !strings.HasPrefix(lines[0], "[1/34] ") ||
		!strings.HasPrefix(lines[len(lines)-1], "[34/34] ") {
		t.Errorf("progress does not count to 34:\n%s", progress)
	}

	text, _, err := runBundle(t, "inspect", file, "--verify")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kubelet ", "registry.k8s.io/etcd:3.6.8-0 ", "control-plane", "every host", "all 34 parts match their digests",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect lacks %q:\n%s", want, text)
		}
	}
	asJSON, _, err := runBundle(t, "inspect", "-o", "json", file)
	if err != nil {
		t.Fatal(err)
	}
	var index release.Index
	if err := json.Unmarshal([]byte(asJSON), &index); err != nil {
		t.Fatal(err)
	}
	b, err := release.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if diff := cmp.Diff(b.Index(), index); diff != "" {
		t.Errorf("JSON differs from the bundle's index (-index +json):\n%s", diff)
	}
}

func TestBundleInspectSaysWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	server := mirror(t)
	file := filepath.Join(t.TempDir(), "bundle.tar")
	if _, _, err := runBundle(t, "create", "-f", file, "--kubernetes-version", "1.36.3", "--cni", "external",
		"--skip-kube-proxy",
		"--mirror", server.URL, "--insecure-mirror", "--trust-source",
		"--overwrite-registry", strings.TrimPrefix(server.URL, "http://")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	out, _, err := runBundle(t, "inspect", file)
	var truncated *release.TruncatedError
	if !errors.As(err, &truncated) || out != "" {
		t.Errorf("error %v, output %q; want a TruncatedError and nothing", err, out)
	}
}

func TestBundleRefusesBadFlagsBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"no file":    {[]string{"create", "--kubernetes-version", "1.36.3"}, `"file" not set`},
		"no version": {[]string{"create", "-f", "x"}, "set -m or --kubernetes-version"},
		"two versions": {[]string{"create", "-f", "x", "-m", "m.yaml", "--kubernetes-version", "1.36.3"},
			"--kubernetes-version contradicts -m: the manifest decides"},
		"two plugins":           {[]string{"create", "-f", "x", "-m", "m.yaml", "--cni", "flannel"}, "--cni contradicts -m"},
		"credentials of what":   {[]string{"create", "-f", "x", "-c", "c.yaml"}, "--credentials needs -m"},
		"manifest that is none": {[]string{"create", "-f", "x", "-m", "no-such-file"}, "no-such-file"},
		"image that is none": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--images", "a:1,A"},
			`"A" is not the name of an image`},
		"an argument too many": {[]string{"create", "x"}, "unknown command"},
		"unsupported version":  {[]string{"create", "-f", "x", "--kubernetes-version", "1.2.3"}, "supported are 1.34"},
		"unknown arch": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--arch", "mips"},
			"supported are amd64"},
		"unknown version of a CNI": {
			[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--cni", "cilium@1.2.3"},
			`--cni: version "1.2.3" of cilium is not supported`,
		},
		"version of another CNI": {
			[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--cni", "flannel@1.2.3"},
			"--cni: the version of the network plugin flannel cannot be chosen",
		},
		"unknown CNI": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--cni", "flanel"},
			`--cni: unknown plugin "flanel"`},
		"insecure what": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--insecure-registry"},
			"needs --overwrite-registry"},
		"insecure which": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--insecure-mirror"},
			"needs --mirror"},
		"mirror without TLS": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--mirror", "http://m"},
			`"http://m" uses plain HTTP; use https, or allow plain HTTP with --insecure-mirror`},
		"no list of digests": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--digests", "none.txt"},
			"none.txt: no such file"},
		"mirror is no URL": {[]string{"create", "-f", "x", "--kubernetes-version", "1.36.3", "--mirror", "m"},
			"not a base URL"},
		"inspect nothing": {[]string{"inspect"}, "accepts 1 arg"},
		"inspect as XML":  {[]string{"inspect", "-o", "xml", "x"}, `not "xml"`},
		"inspect no file": {[]string{"inspect", "no-such-file"}, "no such file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string(nil), test.args...)
			for n := range args {
				if args[n] == "x" && n > 0 && args[n-1] == "-o" {
					args[n] = filepath.Join(t.TempDir(), "x")
				}
			}
			if _, _, err := runBundle(t, args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
