package workspace

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// bundle returns a bundle that holds one text, as a binary.
func bundle(t *testing.T, text string) string {
	t.Helper()
	index, err := json.Marshal(release.Index{
		Format: release.FormatVersion, KubernetesVersion: "1.36.3", Arch: "amd64",
		Artifacts: desired.Artifacts{KubernetesVersion: "1.36.3", Arch: "amd64", Binaries: []desired.Binary{{
			Name: "text-" + sumOf(text), Version: "1.0", URL: "https://example.com/text", SHA256: sumOf(text),
			Size: int64(len(text)),
		}}},
		Entries: []release.Entry{{Size: int64(len(text)), SHA256: sumOf(text)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range [][2]string{
		{"bundle.json", string(index)}, {"blobs/sha256/" + sumOf(text), text},
		{"bundle.sha256", sumOf(string(index)) + "  bundle.json\n"},
	} {
		h := &tar.Header{Name: e[0], Size: int64(len(e[1])), Mode: 0o644, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, e[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// put writes a file as bundles should be: it gets its name when it is complete.
func put(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".partial", text)
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, r engine.Releases, text string) bool {
	t.Helper()
	content, _, err := r.Blob(sumOf(text))
	if err != nil {
		return false
	}
	got, err := io.ReadAll(content)
	if err != nil || string(got) != text {
		t.Errorf("%q: got %q, %v", text, got, err)
	}
	return true
}

func TestBundlesThatAppearInADirectoryAreFound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bundles")
	r := NewReleaseOpener(Options{BundleDir: dir})
	defer r.Close()
	from := func() engine.Releases {
		t.Helper()
		found, err := r.From(t.Context(), "https://mirror.example")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if _, _, err := from().Blob(sumOf("one")); err == nil || !strings.Contains(err.Error(), "--bundle") {
		t.Errorf("without the directory: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if holds(t, from(), "one") {
		t.Error("an empty directory has bundles")
	}
	put(t, filepath.Join(dir, "a.tar"), bundle(t, "one"))
	first := from()
	if !holds(t, first, "one") {
		t.Error("a bundle is not found")
	}
	write(t, filepath.Join(dir, "b.tar.partial"), "half of it")
	write(t, filepath.Join(dir, ".c.tar"), "hidden")
	if err := os.Mkdir(filepath.Join(dir, "d.tar"), 0o700); err != nil {
		t.Fatal(err)
	}
	if from() != first {
		t.Error("other files have the bundles opened again")
	}
	put(t, filepath.Join(dir, "e.tar"), bundle(t, "two"))
	second := from()
	if !holds(t, second, "one") || !holds(t, second, "two") {
		t.Error("of two bundles, one is not found")
	}
	put(t, filepath.Join(dir, "a.tar"), bundle(t, "another"))
	if third := from(); holds(t, third, "one") || !holds(t, third, "another") {
		t.Error("a bundle that was replaced is still read")
	}
	if !holds(t, first, "one") {
		t.Error("what was begun with a bundle cannot go on")
	}
}

func TestADirectoryWithABundleThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := NewReleaseOpener(Options{BundleDir: dir})
	defer r.Close()
	put(t, filepath.Join(dir, "a.tar"), bundle(t, "one"))
	if found, err := r.From(t.Context(), ""); err != nil || !holds(t, found, "one") {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.tar")
	write(t, broken, "x")
	if _, err := r.From(t.Context(), ""); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if found, err := r.From(t.Context(), ""); err != nil || !holds(t, found, "one") {
		t.Errorf("afterwards: %v", err)
	}
	file := NewReleaseOpener(Options{BundleDir: filepath.Join(dir, "a.tar")})
	defer file.Close()
	if _, err := file.From(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "directory of bundles") {
		t.Errorf("a directory that is a file: %v", err)
	}
}

func TestManyAskForReleasesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := NewReleaseOpener(Options{BundleDir: dir})
	defer r.Close()
	put(t, filepath.Join(dir, "a.tar"), bundle(t, "one"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if found, err := r.From(t.Context(), ""); err != nil || !holds(t, found, "one") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	for _, name := range []string{"b.tar", "c.tar"} {
		put(t, filepath.Join(dir, name), bundle(t, name))
	}
	all.Wait()
}

// The published manifest of the network plugin is there before an engine is created, or the reason why it is not.
func TestThePublishedManifestIsReadInAdvance(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := desired.Cluster{KubernetesVersion: "1.36.3"}
	want.Network.CNI.Name = "canal"
	served := http.NewServeMux()
	served.HandleFunc("/raw.githubusercontent.com/projectcalico/calico/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "kind: ConfigMap\n")
	})
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	find := func(o Options) desired.PublishedManifest {
		o.InsecureMirror = true
		r, err := openReleases(t.Context(), o, server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		if err := r.preparePublished(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		names, err := r.Names(release.Want{KubernetesVersion: "1.36.3", Arch: "arm64", CNI: "canal"})
		if err != nil || len(names.Published) != 1 {
			t.Fatal(names.Published, err)
		}
		return names.Published[0]
	}
	if got := find(Options{}); got.Content != nil || !strings.Contains(got.Problem, "canal-manifest 3.32.0") {
		t.Errorf("from a mirror that is not trusted: %+v", got)
	}
	if got := find(Options{TrustSource: true}); string(got.Content) != "kind: ConfigMap\n" || got.Problem != "" {
		t.Errorf("from a trusted mirror: %+v", got)
	}
	server.Close()
	if got := find(Options{TrustSource: true}); string(got.Content) != "kind: ConfigMap\n" {
		t.Errorf("from the cache: %+v", got)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	got := find(Options{TrustSource: true})
	if got.Content != nil || !strings.Contains(got.Problem, "connection refused") {
		t.Errorf("without an answer: %+v", got)
	}
	bundled := filepath.Join(t.TempDir(), "b.tar")
	write(t, bundled, bundle(t, "x"))
	got = find(Options{Bundles: []string{bundled}})
	if got.Content != nil || !strings.Contains(got.Problem, "no bundle has") {
		t.Errorf("from a bundle without it: %+v", got)
	}
	want.Network.CNI.Name = "flannel"
	r, err := openReleases(t.Context(), Options{}, "https://mirror.invalid")
	if err != nil || r.preparePublished(t.Context(), want) != nil || len(r.published) > 0 {
		t.Errorf("another plugin: %+v, %v", r.published, err)
	}
}

// The chart of the network plugin comes from where its other artifacts come from.
func TestTheChartOfTheNetworkPluginIsAnArtifact(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := desired.Cluster{KubernetesVersion: "1.36.3"}
	want.Network.CNI.Name = "cilium"
	served := http.NewServeMux()
	served.HandleFunc("/helm.cilium.io/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "chart")
	})
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	published := plugins.Published("cilium", "")[0]
	from := chart.Source{URL: published.URL(), Version: published.Version}
	find := func(mirror string) ([]byte, error) {
		r, err := openReleases(t.Context(), Options{InsecureMirror: true, TrustSource: true}, mirror)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		if err := r.preparePublished(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		return r.Chart(t.Context(), from)
	}
	if got, err := find(server.URL); err != nil || string(got) != "chart" {
		t.Errorf("from a mirror: %q, %v", got, err)
	}
	server.Close()
	if got, err := find(server.URL); err != nil || string(got) != "chart" {
		t.Errorf("from the cache: %q, %v", got, err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var failure *release.ChartError
	if got, err := find(server.URL); !errors.As(err, &failure) || errors.Is(err, release.ErrNoChart) {
		t.Errorf("without an answer: %q, %v", got, err)
	}
}
