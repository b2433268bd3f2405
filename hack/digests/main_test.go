package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"kubeone/internal/network/plugins"
	"kubeone/internal/release"
)

// official plays the official locations: every file is there and has its own path as its content, and every image is
// the same one.
type official struct {
	stable string // what stable-1.36.txt says
	broken string // path that answers 500
	index  v1.ImageIndex
}

func newOfficial(t *testing.T) *official {
	t.Helper()
	var all []mutate.IndexAddendum
	for _, arch := range release.Architectures() {
		img, err := random.Image(100, 1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return &official{stable: "v1.36.1\n", index: mutate.AppendManifests(empty.Index, all...)}
}

func (o *official) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body, kind := http.StatusOK, []byte(""), ""
	switch p := req.URL.Path; {
	case req.URL.Scheme != "https":
		return nil, errors.New("a request without TLS")
	case p == o.broken:
		status = http.StatusForbidden
	case path.Base(p) == "stable-1.36.txt":
		body = []byte(o.stable)
	case strings.HasPrefix(path.Base(p), "stable-"):
		body = []byte("v" + strings.TrimSuffix(strings.TrimPrefix(path.Base(p), "stable-"), ".txt") + ".0\n")
	case strings.Contains(p, "/manifests/"):
		var err error
		if body, kind, err = o.manifest(path.Base(p)); err != nil {
			return nil, err
		}
	case strings.HasSuffix(p, "/runc.sha256sum"):
		for _, arch := range release.Architectures() {
			body = append(body, sum(path.Dir(p)+"/runc."+arch)+"  runc."+arch+"\n"...)
		}
	case strings.Contains(p, ".sha256"):
		body = []byte(sum(p[:strings.LastIndex(p, ".sha256")]))
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: req, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Header: http.Header{"Content-Type": {kind}},
	}, nil
}

// manifest is that of the index for a tag, and of an image for a digest.
func (o *official) manifest(reference string) (text []byte, kind string, err error) {
	if hash, err := v1.NewHash(reference); err == nil {
		img, err := o.index.Image(hash)
		if err != nil {
			return nil, "", err
		}
		text, err = img.RawManifest()
		if err != nil {
			return nil, "", err
		}
		media, err := img.MediaType()
		return text, string(media), err
	}
	media, err := o.index.MediaType()
	if err == nil {
		text, err = o.index.RawManifest()
	}
	return text, string(media), err
}

func sum(path string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(path))) }

// table is a file with something in it.
func table(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "digests.txt")
	if err := os.WriteFile(file, []byte("as it was\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (o *official) filler() filler {
	now := func() time.Time { return time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC) }
	return filler{transport: o, log: io.Discard, now: now}
}

func TestTheTableHasEveryPartOfEverySupportedVersion(t *testing.T) {
	t.Parallel()
	o, file := newOfficial(t), table(t)
	if err := o.filler().fill(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	text := read(t, file)
	if !strings.HasPrefix(text, header) || !strings.Contains(text, "# Kubernetes 1.34.0 to 1.34.0, 1.35.0 to 1.35.0, "+
		"1.36.0 to 1.36.1, 1.37.0 to 1.37.0, as published at 2026-11-23T20:00:00Z.\n") {
		t.Errorf("the table begins\n%.900s", text)
	}
	for _, has := range []string{
		sum("/release/v1.34.0/bin/linux/arm64/kubeadm") + "  dl.k8s.io/release/v1.34.0/bin/linux/arm64/kubeadm\n",
		sum("/release/v1.36.1/bin/linux/amd64/kubelet") + "  dl.k8s.io/release/v1.36.1/bin/linux/amd64/kubelet\n",
		"  github.com/opencontainers/runc/releases/download/v1.5.2/runc.arm64\n",
		"  registry.k8s.io/kube-apiserver:v1.36.1 linux/amd64\n", "  ghcr.io/flannel-io/flannel:v0.26.7 linux/arm64\n",
	} {
		if strings.Count(text, has) != 1 {
			t.Errorf("the table has %q %d times", has, strings.Count(text, has))
		}
	}
	known, err := release.ParseDigests(text, "the table")
	network := 0
	for _, p := range plugins.All() {
		network += len(p.Binaries()) + len(p.Images())
	}
	// Of 5 versions for 2 architectures: 3 programs and 4 images each. What goes with them is shared: runc, the CNI
	// plugins, what network plugins have; 4 versions of crictl, etcd and CoreDNS, 2 of containerd and pause.
	if want := 2 * (5*7 + 2 + network + 4*3 + 2*2); err != nil || known.Len() != want {
		t.Errorf("%d digests, want %d: %v", known.Len(), want, err)
	}
}

func TestWhateverFailsTheTableIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*official, *filler)
		says   string
	}{
		"no network": {func(_ *official, f *filler) {
			f.transport = roundTrip(func(*http.Request) (*http.Response, error) {
				return nil, errors.New("no network")
			})
		}, "find the newest Kubernetes 1.34: Get \"https://dl.k8s.io/release/stable-1.34.txt\": no network"},
		"one part is missing": {func(o *official, _ *filler) {
			o.broken = "/release/v1.36.1/bin/linux/arm64/kubectl.sha256"
		}, "kubectl 1.36.1"},
		"a version that is none": {func(o *official, _ *filler) { o.stable = "<html>" }, `answers "<html>"`},
		"the version of another": {func(o *official, _ *filler) { o.stable = "v1.37.1" }, `answers "v1.37.1"`},
		"a location that does not serve": {func(o *official, _ *filler) {
			o.broken = "/release/stable-1.35.txt"
		}, "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, file := newOfficial(t), table(t)
			f := o.filler()
			c.change(o, &f)
			if err := f.fill(t.Context(), file); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if text := read(t, file); text != "as it was\n" {
				t.Errorf("the table is now %q", text)
			}
			if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
				t.Errorf("beside the table is left %v, %v", left, err)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The table that is built in was made by this program, or is empty as it was before.
func TestTheBuiltInTableIsThisProgramsOwn(t *testing.T) {
	t.Parallel()
	text := read(t, "../../internal/release/digests.txt")
	if !strings.HasPrefix(text, header) {
		t.Errorf("it begins\n%.700s\nwant\n%s", text, header)
	}
	if _, err := release.KnownDigests(""); err != nil {
		t.Error(err)
	}
}
