package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const testVersion = "1.36.3"

func testWant() Want {
	return Want{KubernetesVersion: testVersion, Arch: "amd64", CNI: "flannel", KubeProxy: true}
}

// world fakes the official locations, or a mirror and a registry, without a network: as an http.RoundTripper for all
// hosts, or as a handler with files under /HOST/PATH and images under /v2/.
type world struct {
	mu       sync.Mutex
	files    map[string][]byte // by HOST/PATH
	registry http.Handler
	images   map[string]v1.Image // by name with tag
	requests []string            // METHOD HOST/PATH
	down     map[string]bool     // hosts that refuse connections
	fail     map[string][]int    // status codes to answer first, by HOST/PATH
	cut      map[string]int      // how many times a file is cut short, by HOST/PATH
}

// newWorld publishes a release with small random content, the same for the same seed. Images are published in the
// registry without the official host's name.
func newWorld(t *testing.T, want Want, seed int64) *world {
	t.Helper()
	w := &world{
		files: map[string][]byte{}, images: map[string]v1.Image{}, down: map[string]bool{}, fail: map[string][]int{},
		cut:      map[string]int{},
		registry: registry.New(registry.Logger(log.New(io.Discard, "", 0))),
	}
	versions, err := want.matchingVersions()
	if err != nil {
		t.Fatal(err)
	}
	source := rand.New(rand.NewSource(seed))
	for _, f := range want.releaseFiles(versions) {
		w.publish(f, randomBytes(source, 1000+source.Intn(3000)))
	}
	for n, i := range want.releaseImages(versions) {
		w.push(t, i, randomImage(t, source, want.Arch), n%2 == 0)
	}
	for _, f := range want.publishedFiles() {
		w.files[f.host+"/"+f.path] = []byte("# " + strings.Repeat(f.name+" ", 200) + "\n")
	}
	w.requests = nil
	return w
}

func (w *world) publish(f file, content []byte) {
	sum := sha256.Sum256(content)
	line := hex.EncodeToString(sum[:])
	if f.host == hostGitHub {
		line += "  " + path.Base(f.path) + "\n"
	}
	w.files[f.host+"/"+f.path] = content
	w.files[f.host+"/"+f.sums] = []byte(line)
}

// push publishes an image, within an index of two platforms or alone.
func (w *world) push(t *testing.T, i image, img v1.Image, indexed bool) {
	t.Helper()
	ref, err := name.ParseReference("registry.test/" + i.repository + ":" + i.tag)
	if err != nil {
		t.Fatal(err)
	}
	w.images[i.repository+":"+i.tag] = img
	if !indexed {
		if err := remote.Write(ref, img, remote.WithTransport(w)); err != nil {
			t.Fatal(err)
		}
		return
	}
	other := randomImage(t, newRand(99), "s390x")
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{
			Add:        other,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}},
		},
		mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
		})
	if err := remote.WriteIndex(ref, index, remote.WithTransport(w)); err != nil {
		t.Fatal(err)
	}
}

func randomImage(t *testing.T, source *rand.Rand, arch string) v1.Image {
	t.Helper()
	img, err := random.Image(600, 2, random.WithSource(source))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := random.Layer(500, types.DockerLayer, random.WithSource(newRand(7)))
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, shared); err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{}
	for n := range config.History {
		config.History[n].Created = v1.Time{}
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func randomBytes(source *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(source.Intn(256))
	}
	return out
}

// RoundTrip fakes every host.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	down := w.down[req.URL.Hostname()]
	w.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	recorder := httptest.NewRecorder()
	inner := req.Clone(req.Context())
	inner.Host, inner.RequestURI = req.URL.Host, req.URL.RequestURI()
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	if !strings.HasPrefix(req.URL.Path, "/v2/") {
		inner.URL.Path = "/" + req.URL.Host + req.URL.Path
	}
	w.ServeHTTP(recorder, inner)
	resp := recorder.Result()
	resp.Request = req
	return resp, nil
}

// asMirror fakes the official locations, and mirror.example.com with the same files.
func (w *world) asMirror(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "mirror.example.com" {
		return w.RoundTrip(req)
	}
	official := req.Clone(req.Context())
	official.URL.Host, official.URL.Path, _ = strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	official.URL.Path = "/" + official.URL.Path
	return w.RoundTrip(official)
}

// ServeHTTP fakes a mirror and a registry.
func (w *world) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/")
	w.mu.Lock()
	w.requests = append(w.requests, req.Method+" "+name)
	content, ok := w.files[name]
	code := 0
	if codes := w.fail[name]; len(codes) > 0 {
		code, w.fail[name] = codes[0], codes[1:]
	}
	short := req.Method == http.MethodGet && w.cut[name] > 0
	if short {
		w.cut[name]--
	}
	w.mu.Unlock()
	switch {
	case code != 0:
		http.Error(out, "as the test wants it", code)
	case strings.HasPrefix(req.URL.Path, "/v2/"):
		w.registry.ServeHTTP(out, req)
	case !ok:
		http.NotFound(out, req)
	case short:
		_, _ = out.Write(content[:len(content)/2])
	default:
		http.ServeContent(out, req, "file", time.Time{}, bytes.NewReader(content))
	}
}

func (w *world) source() Source { return Source{Transport: w, RetryPause: time.Millisecond} }

// fromMirror returns a trusted mirror without TLS.
func fromMirror(url string) Source { return Source{Mirror: url, InsecureMirror: true, Trusted: true} }

func (w *world) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.requests
	w.requests = nil
	return out
}

func (w *world) digest(t *testing.T, imageName string) string {
	t.Helper()
	img, ok := w.images[imageName]
	if !ok {
		t.Fatalf("the test has no image %s", imageName)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func (w *world) sum(hostPath string) string {
	sum := sha256.Sum256(w.files[hostPath])
	return hex.EncodeToString(sum[:])
}

func kubeletPath() string {
	return fmt.Sprintf("dl.k8s.io/release/v%s/bin/linux/amd64/kubelet", testVersion)
}

const crictlPath = "github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-linux-amd64.tar.gz"

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func newRand(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }

func lastIndex(list []string, s string) int {
	last := -1
	for n, have := range list {
		if have == s {
			last = n
		}
	}
	return last
}
