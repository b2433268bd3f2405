package release

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubeone/internal/addons/chart"
	"kubeone/internal/model/desired"
)

// newChart returns an empty chart.
func newChart(t *testing.T, name, version string) chart.Chart {
	t.Helper()
	archive, err := chart.Pack(name, fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: " + name + "\nversion: " + version + "\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := chart.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fromRepository(version string) chart.Source {
	return chart.Source{RepoURL: "https://user:secret@charts.example.com/stable/", Name: "web", Version: version}
}

func fromRegistry(version string) chart.Source {
	return chart.Source{URL: "oci://registry.example.com/charts/app", Version: version, Password: "secret"}
}

func fromURL() chart.Source { return chart.Source{URL: "https://example.com/tool.tgz"} }

// exampleWorkloads are charts of each kind of source, and two images. Another image is part of the release.
func exampleWorkloads(t *testing.T) Workloads {
	t.Helper()
	return Workloads{
		Charts: []Chart{
			{fromRepository("~1.0"), newChart(t, "web", "1.0.2")},
			{fromRepository("~1.1"), newChart(t, "web", "1.1.0")},
			{fromRepository(">=1.1"), newChart(t, "web", "1.1.0")},
			{fromRegistry("1.4.2"), newChart(t, "app", "1.4.2")},
			{fromURL(), newChart(t, "tool", "2.0.0-rc.1")},
		},
		Images: []string{
			"app:2", "docker.io/library/app:2", "quay.example.com:5000/team/tool:1", "registry.k8s.io/etcd:3.6.8-0",
		},
	}
}

// newWorkloadWorld publishes a release and the images of exampleWorkloads.
func newWorkloadWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, testWant(), 1)
	w.push(t, image{repository: "library/app", tag: "2"}, randomImage(t, newRand(21), "amd64"), true)
	w.push(t, image{repository: "team/tool", tag: "1"}, randomImage(t, newRand(22), "amd64"), false)
	return w
}

func createWithWorkloads(t *testing.T, src Source, want Want, add Workloads) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Create(t.Context(), &b, src, want, CreateOptions{
		CreatedBy: "test", SpoolDir: t.TempDir(), Workloads: add,
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func libraryOf(t *testing.T, contents ...[]byte) *Library {
	t.Helper()
	var paths []string
	for _, content := range contents {
		path := filepath.Join(t.TempDir(), "b.tar")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return library(t, paths...)
}

func TestNamesOfImagesInPods(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"nginx":                               "docker.io/library/nginx:latest",
		"nginx:1.27":                          "docker.io/library/nginx:1.27",
		"docker.io/nginx:1.27":                "docker.io/library/nginx:1.27",
		"index.docker.io/team/app:1":          "docker.io/team/app:1",
		"team/app:1":                          "docker.io/team/app:1",
		"ghcr.io/team/a_b/c-d:v1.0":           "ghcr.io/team/a_b/c-d:v1.0",
		"registry.example.com:5000/app:1":     "registry.example.com:5000/app:1",
		"localhost:5000/app:1":                "localhost:5000/app:1",
		"ghcr.io/team/app" + digest:           "ghcr.io/team/app" + digest,
		"ghcr.io/team/app:1.0" + digest:       "ghcr.io/team/app" + digest,
		"":                                    "",
		"*":                                   "",
		"Nginx:1":                             "",
		"nginx:1 linux/amd64\nnginx:2":        "",
		"-v.example.com/app:$(reboot)":        "",
		"ghcr.io/team/app@sha256:" + "00":     "",
		"https://registry.example.com/app:1":  "",
		"registry.example.com/../../etc:1":    "",
		"registry.example.com/app:1;shutdown": "",
	} {
		i, err := parseImage(text)
		got := ""
		if err == nil {
			got = i.officialName()
		}
		var invalid *ImageNameError
		if got != want || (want == "") != errors.As(err, &invalid) {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestABundleHasImagesOfWorkloads(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	l := libraryOf(t, createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t)))
	if err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	want := testWant()
	want.OverwriteRegistry, want.Role = "registry.example.com/k8s", desired.Worker
	got, err := l.For(want)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, i := range got.ImagesFor(desired.Worker) {
		if i.Workload {
			names[i.Name] = i.Digest
		}
	}
	if diff := cmp.Diff(map[string]string{
		"docker.io/library/app:2":           w.digest(t, "library/app:2"),
		"quay.example.com:5000/team/tool:1": w.digest(t, "team/tool:1"),
		"registry.k8s.io/etcd:3.6.8-0":      w.digest(t, "etcd:3.6.8-0"),
	}, names); diff != "" {
		t.Errorf("images of workers (-want +got):\n%s", diff)
	}
	if got, err = l.For(testWant()); err != nil {
		t.Fatal(err)
	}
	etcd := slices.DeleteFunc(got.ImagesFor(desired.Worker), func(i desired.Image) bool {
		return !strings.Contains(i.Name, "/etcd:")
	})
	if len(etcd) != 1 {
		t.Errorf("workers have etcd %d times", len(etcd))
	}
	if files, err := l.Files(); err != nil || len(files) != 1 {
		t.Errorf("%+v, %v", files, err)
	}
}

// The release comes from a mirror and another registry, images of workloads from their own registries.
func TestImagesOfWorkloadsComeFromTheirOwnRegistry(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	genuine := createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t))
	src, want := otherLocation(w)
	src.Trusted = true
	if again := createWithWorkloads(t, src, want, exampleWorkloads(t)); !bytes.Equal(genuine, again) {
		t.Error("another source makes another bundle")
	}
	w.down["quay.example.com"] = true
	var fetch *FetchError
	if _, err := Create(t.Context(), &bytes.Buffer{}, src, want, CreateOptions{
		SpoolDir: t.TempDir(), Workloads: exampleWorkloads(t),
	}); !errors.As(err, &fetch) || len(fetch.Failures) != 1 || fetch.Failures[0].Host != "quay.example.com:5000" {
		t.Errorf("got %v", err)
	}
}

func TestAnImageWithADigestKeepsItsName(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	ref, err := name.ParseReference("registry.test/library/app:2")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Get(ref, remote.WithTransport(w))
	if err != nil {
		t.Fatal(err)
	}
	pinned := "docker.io/library/app@" + index.Digest.String()
	l := libraryOf(t, createWithWorkloads(t, w.source(), testWant(), Workloads{Images: []string{pinned}}))
	got, err := l.For(testWant())
	if err != nil {
		t.Fatal(err)
	}
	last := got.Images[len(got.Images)-1]
	if last.Name != pinned || last.Digest != w.digest(t, "library/app:2") || last.Digest == index.Digest.String() {
		t.Errorf("%+v", last)
	}
	if text, _, err := ImageIndex(got.Images, "amd64"); err != nil || !strings.Contains(string(text), pinned) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTheDigestOfImagesOfWorkloads(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	plain := createBytes(t, w.source(), testWant())
	one := createWithWorkloads(t, w.source(), testWant(), Workloads{Images: []string{"app:2"}})
	both := createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t))
	w.push(t, image{repository: "library/app", tag: "2"}, randomImage(t, newRand(23), "amd64"), true)
	moved := createWithWorkloads(t, w.source(), testWant(), Workloads{Images: []string{"app:2"}})
	if got := libraryOf(t, plain).WorkloadImages(); got != "" {
		t.Errorf("a bundle without them has %q", got)
	}
	want := libraryOf(t, one).WorkloadImages()
	if got := libraryOf(t, plain, one, one).WorkloadImages(); got != want || !isSHA256(got) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := libraryOf(t, both, one).WorkloadImages(); got != libraryOf(t, one, both).WorkloadImages() || got == want {
		t.Errorf("the order of bundles counts, or another image does not: %q", got)
	}
	if got := libraryOf(t, moved).WorkloadImages(); got == want {
		t.Error("a tag that has moved is the same image")
	}
}

func TestABundleHasCharts(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	bundle := createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t))
	if bytes.Contains(bundle, []byte("secret")) {
		t.Error("the bundle contains credentials")
	}
	l := libraryOf(t, createBytes(t, w.source(), testWant()), bundle)
	local := chart.Source{Archive: []byte("a"), Folder: "./web"}
	for _, c := range []struct {
		from    chart.Source
		version string // "" if no bundle has it
		says    string
	}{
		{fromRepository("~1.0"), "1.0.2", ""},
		{fromRepository(""), "1.1.0", ""},
		{fromRepository("1.1.0"), "1.1.0", ""},
		{fromRepository("2"), "", "no bundle contains chart web 2 from https://user:xxxxx@charts.example.com/stable/ " +
			"(only 1.0.2, 1.1.0); create the bundle again with kubeone bundle create -m"},
		{fromRegistry("1.4.2"), "1.4.2", ""},
		{fromRegistry("1.4.3"), "",
			"no bundle contains chart app 1.4.3 from oci://registry.example.com/charts/app (only 1.4.2)"},
		{fromURL(), "2.0.0-rc.1", ""},
		{chart.Source{URL: "https://example.com/other.tgz"}, "",
			"no bundle contains chart https://example.com/other.tgz; create"},
		{chart.Source{RepoURL: "https://charts.example.com/stable", Name: "other"}, "",
			"no bundle contains chart other from"},
	} {
		archive, err := l.Chart(c.from)
		var missing *MissingChartError
		if c.version == "" {
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.from, err)
			}
			continue
		}
		if loaded, broken := chart.Load(archive); err != nil || broken != nil || loaded.Version != c.version {
			t.Errorf("%s: version %q, %v, %v, want %s", c.from, loaded.Version, err, broken, c.version)
		}
	}
	if got, err := l.Chart(local); err != nil || string(got) != "a" {
		t.Errorf("a chart in a folder: %q, %v", got, err)
	}
	if _, err := l.Chart(fromRepository("not a version")); err == nil {
		t.Error("a version that is none is accepted")
	}
}

func TestChartsThatDoNotMatchTheirSourceAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	create := func(src Source, c Chart) error {
		_, err := Create(t.Context(), &bytes.Buffer{}, src, testWant(), CreateOptions{
			SpoolDir: t.TempDir(), Workloads: Workloads{Charts: []Chart{c}},
		})
		return err
	}
	if err := create(w.source(), Chart{fromRegistry("1.4.2"), newChart(t, "app", "9.0.0")}); err == nil ||
		!strings.Contains(err.Error(), "its archive has version 9.0.0") {
		t.Errorf("another version: %v", err)
	}
	known := w.source()
	known.Known = listing(t, "list", strings.Repeat("0", 64)+"  charts.example.com/stable/web-1.0.0.tgz")
	var mismatch *MismatchError
	if err := create(known, Chart{fromRepository("1.0.0"), newChart(t, "web", "1.0.0")}); !errors.As(err, &mismatch) {
		t.Errorf("another digest than the known one: %v", err)
	}
}

func TestChartsOfABundleAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	genuine := createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t))
	archive := newChart(t, "app", "1.4.2").Archive()
	at := bytes.Index(genuine, archive)
	altered := slices.Clone(genuine)
	altered[at+len(archive)/2] ^= 1
	other := craft(t, genuine, func(c *crafted) { c.Artifacts.Charts[2].Version = "1.4.3" })
	for version, content := range map[string][]byte{"1.4.2": altered, "1.4.3": other} {
		var alteredError *AlteredError
		if _, err := libraryOf(t, content).Chart(fromRegistry(version)); !errors.As(err, &alteredError) {
			t.Errorf("%s: %v", version, err)
		}
	}
	path := filepath.Join(t.TempDir(), "b.tar")
	if err := os.WriteFile(path, genuine, 0o600); err != nil {
		t.Fatal(err)
	}
	listed := newChart(t, "app", "1.4.2").Digest + "  registry.example.com/charts/app-1.4.2.tgz"
	l, err := OpenLibrary(t.Context(), LibraryOptions{Known: listing(t, "list", listed), Strict: true}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := l.Chart(fromRegistry("1.4.2")); err != nil {
		t.Errorf("a chart in the list: %v", err)
	}
	var untrusted *UntrustedError
	if _, err := l.Chart(fromRepository("1.1.0")); !errors.As(err, &untrusted) {
		t.Errorf("a chart that is not in the list: %v", err)
	}
}

func TestTwoBundlesWithDifferentChartsContradict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	one, two := newChart(t, "web", "1.0.0"), newChart(t, "other", "1.0.0")
	dir := t.TempDir()
	var paths []string
	for name, c := range map[string]chart.Chart{"a.tar": one, "b.tar": two} {
		content := createWithWorkloads(t, w.source(), testWant(), Workloads{Charts: []Chart{{fromRepository("1.0.0"), c}}})
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var conflict *ConflictError
	if _, err := OpenLibrary(t.Context(), LibraryOptions{}, paths...); !errors.As(err, &conflict) ||
		conflict.What != "chart web 1.0.0 from https://charts.example.com/stable" {
		t.Errorf("got %v", err)
	}
}

func TestAnIndexMustDescribeItsCharts(t *testing.T) {
	t.Parallel()
	w := newWorkloadWorld(t)
	genuine := createWithWorkloads(t, w.source(), testWant(), exampleWorkloads(t))
	for name, change := range map[string]func(*desired.BundledChart){
		"name":         func(c *desired.BundledChart) { c.Name = "../x" },
		"version":      func(c *desired.BundledChart) { c.Version = "one" },
		"no location":  func(c *desired.BundledChart) { c.RepoURL = "" },
		"two":          func(c *desired.BundledChart) { c.URL = "https://example.com/x.tgz" },
		"scheme":       func(c *desired.BundledChart) { c.RepoURL = "file:///etc" },
		"control":      func(c *desired.BundledChart) { c.RepoURL += "\x1b[2J" },
		"long":         func(c *desired.BundledChart) { c.RepoURL += strings.Repeat("a", maxLocation) },
		"size":         func(c *desired.BundledChart) { c.Size++ },
		"digest":       func(c *desired.BundledChart) { c.SHA256 = strings.Repeat("0", 64) },
		"huge archive": func(c *desired.BundledChart) { c.Size = chart.MaxArchiveBytes + 1 },
	} {
		_, err := openBytes(t, craft(t, genuine, func(c *crafted) { change(&c.Artifacts.Charts[0]) }))
		var altered *AlteredError
		if !errors.As(err, &altered) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
