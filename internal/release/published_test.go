package release

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

const canalPath = "raw.githubusercontent.com/projectcalico/calico/v3.32.0/manifests/canal.yaml"

// wantCanal returns a release with a published manifest.
func wantCanal() Want {
	want := testWant()
	want.CNI = "canal"
	return want
}

// fetchCanal returns the content of the manifest, and whether it was downloaded.
func fetchCanal(t *testing.T, w *world, src Source) (content string, downloaded bool) {
	t.Helper()
	w.seen()
	got, err := FetchPublished(t.Context(), src, wantCanal())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].SHA256 != hexSum(got[0].Content) || got[0].URL != "https://"+canalPath {
		t.Fatalf("%+v", got)
	}
	return string(got[0].Content), slices.Contains(w.seen(), "GET "+canalPath)
}

func TestAPublishedManifestIsNotForHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wantCanal(), 1)
	got, err := FetchPublished(t.Context(), w.source(), wantCanal())
	if err != nil || len(got) != 1 || got[0].SHA256 != w.sum(canalPath) || got[0].Known {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := FetchPublished(t.Context(), w.source(), testWant()); err != nil || len(got) > 0 {
		t.Errorf("another plugin has %+v, %v", got, err)
	}
	names, err := Names(wantCanal())
	if err != nil || len(names.Published) != 1 || names.Published[0].Content != nil || names.Published[0].SHA256 != "" {
		t.Errorf("by name: %+v, %v", names.Published, err)
	}
	w.down["raw.githubusercontent.com"] = true
	if got := resolve(t, w.source(), wantCanal()); len(got.Published) > 0 {
		t.Errorf("hosts need %+v", got.Published)
	}
	_, err = FetchPublished(t.Context(), w.source(), wantCanal())
	var fetch *FetchError
	if !errors.As(err, &fetch) || len(fetch.Failures) != 1 || fetch.Failures[0].Part != "canal-manifest 3.32.0" {
		t.Errorf("got %v", err)
	}
}

func TestAPublishedManifestIsCachedByItsDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wantCanal(), 1)
	src := w.source()
	src.CacheDir = t.TempDir()
	first, downloaded := fetchCanal(t, w, src)
	if !downloaded {
		t.Error("the cache is not empty")
	}
	w.down["raw.githubusercontent.com"] = true
	if again, downloaded := fetchCanal(t, w, src); downloaded || again != first {
		t.Errorf("downloaded %t, %d bytes", downloaded, len(again))
	}
	w.down["raw.githubusercontent.com"] = false
	cached := filepath.Join(src.CacheDir, w.sum(canalPath)+".content")
	if err := os.WriteFile(cached, []byte("altered"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, downloaded := fetchCanal(t, w, src); !downloaded || again != first {
		t.Errorf("altered content is used: downloaded %t, %d bytes", downloaded, len(again))
	}
}

func TestAPublishedManifestOfAMirrorIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wantCanal(), 1)
	src := Source{Mirror: "https://mirror.example.com", Transport: roundTrip(w.asMirror), CacheDir: t.TempDir()}
	var untrusted *UntrustedError
	if _, err := FetchPublished(t.Context(), src, wantCanal()); !errors.As(err, &untrusted) {
		t.Fatalf("got %v", err)
	}
	if left, err := os.ReadDir(src.CacheDir); err != nil || len(left) > 0 {
		t.Errorf("cached: %v, %v", left, err)
	}
	listed, err := ParseDigests(w.sum(canalPath)+"  "+canalPath+"\n", "list")
	if err != nil {
		t.Fatal(err)
	}
	src.Known = listed
	got, err := FetchPublished(t.Context(), src, wantCanal())
	if err != nil || !got[0].Known {
		t.Errorf("a known manifest: %+v, %v", got, err)
	}
	w.files[canalPath] = []byte("kind: Evil\n")
	src.CacheDir = ""
	var mismatch *MismatchError
	if _, err := FetchPublished(t.Context(), src, wantCanal()); !errors.As(err, &mismatch) {
		t.Errorf("another manifest: %v", err)
	}
}

func TestAPublishedManifestHasLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wantCanal(), 1)
	for want, content := range map[string]string{
		"has more than": strings.Repeat("#", network.MaxManifest+1), "is empty": "",
	} {
		w.files[canalPath] = []byte(content)
		if _, err := FetchPublished(t.Context(), w.source(), wantCanal()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestABundleHasThePublishedManifest(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, wantCanal(), 1), t.TempDir()
	l := library(t, bundleFile(t, dir, "canal.tar", w, wantCanal()))
	if err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	got, err := l.Published(wantCanal())
	if err != nil || len(got) != 1 || string(got[0].Content) != string(w.files[canalPath]) {
		t.Fatalf("%+v, %v", got, err)
	}
	whole, err := l.For(wantCanal())
	if err != nil || len(whole.Published) > 0 {
		t.Errorf("%+v, %v", whole.Published, err)
	}
	if files, err := l.Files(); err != nil || len(files) != 1 {
		t.Errorf("%+v, %v", files, err)
	}
	other := library(t, bundleFile(t, dir, "flannel.tar", newWorld(t, testWant(), 1), testWant()))
	var missing *MissingError
	if _, err := other.Published(wantCanal()); !errors.As(err, &missing) ||
		!slices.Equal(missing.Parts, []string{"canal-manifest 3.32.0"}) {
		t.Errorf("got %v", err)
	}
}

func TestAnAlteredManifestInABundleIsNotUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wantCanal(), 1)
	text := createBytes(t, w.source(), wantCanal())
	at := strings.Index(string(text), string(w.files[canalPath]))
	if at < 0 {
		t.Fatal("the bundle does not contain the manifest")
	}
	text[at] ^= 1
	path := filepath.Join(t.TempDir(), "b.tar")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var altered *AlteredError
	if _, err := library(t, path).Published(wantCanal()); !errors.As(err, &altered) {
		t.Errorf("got %v", err)
	}
}

func TestAnIndexMustDescribeItsManifests(t *testing.T) {
	t.Parallel()
	genuine := createBytes(t, newWorld(t, wantCanal(), 1).source(), wantCanal())
	for name, change := range map[string]func(*desired.PublishedManifest){
		"name":     func(p *desired.PublishedManifest) { p.Name = "../x" },
		"version":  func(p *desired.PublishedManifest) { p.Version = "v1;x" },
		"location": func(p *desired.PublishedManifest) { p.URL = "file:///etc/passwd" },
		"size":     func(p *desired.PublishedManifest) { p.Size++ },
		"digest":   func(p *desired.PublishedManifest) { p.SHA256 = strings.Repeat("0", 64) },
	} {
		_, err := openBytes(t, craft(t, genuine, func(c *crafted) { change(&c.Artifacts.Published[0]) }))
		var altered *AlteredError
		if !errors.As(err, &altered) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	large := strings.Repeat("#", network.MaxManifest+1)
	_, err := openBytes(t, craft(t, genuine, func(c *crafted) {
		p := &c.Artifacts.Published[0]
		c.drop(p.SHA256)
		p.SHA256, p.Size = c.add(large), int64(len(large))
	}))
	if err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a large manifest: %v", err)
	}
}
