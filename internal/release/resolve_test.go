package release

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

func resolve(t *testing.T, src Source, want Want) desired.Artifacts {
	t.Helper()
	got, err := Resolve(t.Context(), src, want)
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	return got
}

func TestResolveNamesEveryPartWithItsOfficialLocationAndDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	got := resolve(t, w.source(), testWant())

	const github = "https://github.com/"
	wantURLs := map[string]string{
		"kubelet": "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet",
		"kubeadm": "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubeadm",
		"kubectl": "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubectl",
		"containerd": github +
			"containerd/containerd/releases/download/v2.4.2/containerd-2.4.2-linux-amd64.tar.gz",
		"runc": github + "opencontainers/runc/releases/download/v1.5.2/runc.amd64",
		"cni-plugins": github +
			"containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz",
		"cni-plugin-flannel": github + "flannel-io/cni-plugin/releases/download/v1.9.1-flannel1/" +
			"cni-plugin-flannel-linux-amd64-v1.9.1-flannel1.tgz",
		"crictl": "https://" + crictlPath,
	}
	gotURLs := map[string]string{}
	for _, b := range got.Binaries {
		gotURLs[b.Name] = b.URL
		if want := w.sum(strings.TrimPrefix(b.URL, "https://")); b.SHA256 != want {
			t.Errorf("%s: sha256 %s, want %s", b.Name, b.SHA256, want)
		}
		archive := strings.HasSuffix(b.URL, ".tgz") || strings.HasSuffix(b.URL, ".tar.gz")
		if b.Archive != archive || strings.HasPrefix(b.Version, "v") {
			t.Errorf("%s: archive %v, version %q", b.Name, b.Archive, b.Version)
		}
	}
	if diff := cmp.Diff(wantURLs, gotURLs); diff != "" {
		t.Errorf("locations (-want +got):\n%s", diff)
	}

	cp := []desired.Role{desired.ControlPlane}
	image := func(registry, rest string, roles []desired.Role) desired.Image {
		return desired.Image{
			Name:   registry + "/" + rest,
			Source: registry + "/" + rest,
			Digest: w.digest(t, rest),
			Roles:  roles,
		}
	}
	wantImages := []desired.Image{
		image("registry.k8s.io", "kube-apiserver:v1.36.3", cp),
		image("registry.k8s.io", "kube-controller-manager:v1.36.3", cp),
		image("registry.k8s.io", "kube-scheduler:v1.36.3", cp),
		image("registry.k8s.io", "etcd:3.6.8-0", cp),
		image("registry.k8s.io", "kube-proxy:v1.36.3", nil),
		image("registry.k8s.io", "pause:3.10.2", nil),
		image("registry.k8s.io", "coredns/coredns:v1.14.2", nil),
		image("ghcr.io", "flannel-io/flannel:v0.26.7", nil),
	}
	for n := range got.Images {
		if got.Images[n].Size < 1000 {
			t.Errorf("%s: size %d, want the sum of config and layers", got.Images[n].Name, got.Images[n].Size)
		}
		got.Images[n].Size = 0
	}
	if diff := cmp.Diff(wantImages, got.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if got.Pushed {
		t.Error("Pushed is set, though hosts download")
	}
}

func TestResolveLeavesOutWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	want := testWant()
	w := newWorld(t, want, 1)
	want.CNI, want.KubeProxy = "external", false
	got := resolve(t, w.source(), want)
	if _, ok := got.Binary("cni-plugin-flannel"); ok {
		t.Error("flannel's plugin is there without flannel")
	}
	for _, i := range got.Images {
		if strings.Contains(i.Name, "flannel") || strings.Contains(i.Name, "kube-proxy") {
			t.Errorf("%s is there", i.Name)
		}
	}
}

func TestResolveFromMirrorAndOverwrittenRegistry(t *testing.T) {
	t.Parallel()
	want := testWant()
	w := newWorld(t, want, 1)
	server := httptest.NewServer(w)
	defer server.Close()
	want.OverwriteRegistry = strings.TrimPrefix(server.URL, "http://") // a loopback registry without TLS
	got := resolve(t, fromMirror(server.URL+"/"), want)

	kubelet, _ := got.Binary(desired.BinaryKubelet)
	if wantURL := server.URL + "/" + kubeletPath(); kubelet.URL != wantURL || kubelet.SHA256 != w.sum(kubeletPath()) {
		t.Errorf("kubelet comes from %s, want %s", kubelet.URL, wantURL)
	}
	for _, i := range got.Images {
		rest, ok := strings.CutPrefix(i.Name, want.OverwriteRegistry+"/")
		if !ok || i.Source != i.Name || i.Digest != w.digest(t, rest) {
			t.Errorf("image %+v does not come from %s", i, want.OverwriteRegistry)
		}
	}
}

func TestResolveRefusesRegistryWithoutTLSUnlessAllowed(t *testing.T) {
	t.Parallel()
	want := testWant()
	w := newWorld(t, want, 1)
	refusing := roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.URL.Hostname() == "10.0.0.9" && req.URL.Scheme == "https" {
			return nil, errors.New("http: server gave HTTP response to HTTPS client")
		}
		return w.RoundTrip(req)
	})
	want.OverwriteRegistry = "10.0.0.9:5000"
	src := Source{Transport: refusing, RetryPause: time.Millisecond, Trusted: true}
	_, err := Resolve(t.Context(), src, want)
	if !errors.Is(err, errPlainHTTP) {
		t.Errorf("error %v, want one about plain HTTP", err)
	}
	want.Insecure = true
	if _, err := Resolve(t.Context(), src, want); err != nil {
		t.Errorf("with Insecure: %v", err)
	}
}

// The image coredns comes from DNSRepository, wherever the others come from.
func TestResolveCoreDNSFromItsOwnRepository(t *testing.T) {
	t.Parallel()
	for overwrite, others := range map[string]string{"": "registry.k8s.io/", "all.example.com": "all.example.com/"} {
		want := testWant()
		w := newWorld(t, want, 1)
		want.OverwriteRegistry, want.DNSRepository = overwrite, "dns.example.com:5000/coredns"
		src := w.source()
		src.Trusted = true
		got := resolve(t, src, want)
		names, err := Names(want)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for n, i := range got.Images {
			if _, rest, _ := strings.Cut(i.Name, "/"); i.Name != names.Images[n].Name || i.Source != i.Name ||
				i.Digest != w.digest(t, rest) {
				t.Errorf("%q: %+v, by name %s", overwrite, i, names.Images[n].Name)
			}
			switch {
			case i.Name == "dns.example.com:5000/coredns/coredns:v1.14.2":
				seen++
			case strings.Contains(i.Name, "coredns"), strings.Contains(i.Name, "/kube-") &&
				!strings.HasPrefix(i.Name, others):
				t.Errorf("%q: %s", overwrite, i.Name)
			}
		}
		if seen != 1 {
			t.Errorf("%q: %d images of CoreDNS", overwrite, seen)
		}
	}
}

// Insecure applies only to the host of OverwriteRegistry: others are verified with TLS.
func TestResolveIsInsecureOnlyWithTheOverwrittenRegistry(t *testing.T) {
	t.Parallel()
	for repository, allowed := range map[string]bool{
		"10.0.0.9:5000/coredns": true, "10.0.0.9:5001/coredns": false, "10.0.0.8:5000/coredns": false,
	} {
		want := testWant()
		w := newWorld(t, want, 1)
		plain := roundTrip(func(req *http.Request) (*http.Response, error) {
			if strings.HasPrefix(req.URL.Hostname(), "10.0.0.") && req.URL.Scheme == "https" {
				return nil, errors.New("http: server gave HTTP response to HTTPS client")
			}
			return w.RoundTrip(req)
		})
		want.OverwriteRegistry, want.Insecure, want.DNSRepository = "10.0.0.9:5000", true, repository
		src := Source{Transport: plain, RetryPause: time.Millisecond, Trusted: true}
		_, err := Resolve(t.Context(), src, want)
		var failed *FetchError
		if allowed && err != nil ||
			!allowed && (!errors.As(err, &failed) || len(failed.Failures) != 1 ||
				!strings.Contains(failed.Failures[0].Part, "coredns")) {
			t.Errorf("%s: %v", repository, err)
		}
	}
}

func TestResolveOptionalCrictl(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		damage    func(*world)
		wantError bool
	}{
		"missing is left out":      {func(w *world) { delete(w.files, crictlPath+".sha256") }, false},
		"forbidden is an error":    {func(w *world) { w.fail[crictlPath+".sha256"] = []int{403, 403, 403} }, true},
		"broken server is one too": {func(w *world) { w.fail[crictlPath+".sha256"] = []int{500, 500, 500} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testWant(), 1)
			test.damage(w)
			got, err := Resolve(t.Context(), w.source(), testWant())
			if (err != nil) != test.wantError {
				t.Fatalf("error %v, want one: %v", err, test.wantError)
			}
			if _, ok := got.Binary(desired.BinaryCrictl); ok {
				t.Error("crictl is there")
			}
		})
	}
}

func TestResolveMissingRequiredFileNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	delete(w.files, kubeletPath()+".sha256")
	_, err := Resolve(t.Context(), w.source(), testWant())
	var fetch *FetchError
	if !errors.As(err, &fetch) || fetch.Offline() || len(fetch.Failures) != 1 ||
		fetch.Failures[0].Part != "kubelet 1.36.3" {
		t.Fatalf("error %#v, want a FetchError about kubelet alone", err)
	}
	if text := err.Error(); !strings.Contains(text, kubeletPath()) || !strings.Contains(text, "404") {
		t.Errorf("error lacks URL or status: %s", text)
	}
	if got := w.seen(); slices.Index(got, "GET "+kubeletPath()+".sha256") != lastIndex(got,
		"GET "+kubeletPath()+".sha256") {
		t.Error("a 404 was asked for twice")
	}
}

func TestResolveRetriesPassingFailuresOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	w.fail[kubeletPath()+".sha256"] = []int{503, 429}
	w.fail["v2/pause/manifests/3.10.2"] = []int{502}
	resolve(t, w.source(), testWant())

	w.fail[kubeletPath()+".sha256"] = []int{503, 503, 503, 503}
	if _, err := Resolve(t.Context(), w.source(), testWant()); err == nil {
		t.Error("success after three failures, want an error")
	}
}

func TestResolveOfflineIsOneErrorThatNamesPartsAndAlternatives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	w.down["dl.k8s.io"], w.down["registry.k8s.io"] = true, true
	_, err := Resolve(t.Context(), w.source(), testWant())
	var fetch *FetchError
	if !errors.As(err, &fetch) || !fetch.Offline() || len(fetch.Failures) != 3+7 {
		t.Fatalf("error %v, want a FetchError with ten failures, offline", err)
	}
	for _, want := range []string{
		"Kubernetes 1.36.3 for linux/amd64", "from dl.k8s.io: kubelet 1.36.3, kubeadm 1.36.3, kubectl 1.36.3: ",
		"from registry.k8s.io: image kube-apiserver:v1.36.3, ", "mirror", "kubeone bundle create",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "github.com") {
		t.Errorf("error names a host that answered:\n%v", err)
	}
}

func TestResolveAfterCancelIsTheContextsError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Resolve(ctx, w.source(), testWant()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestResolveAgainTakesNoNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	delete(w.files, crictlPath+".sha256")
	src := w.source()
	src.CacheDir = filepath.Join(t.TempDir(), "made", "when", "needed")
	first := resolve(t, src, testWant())
	w.seen()
	second := resolve(t, src, testWant())
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the cache changes the answer (-first +second):\n%s", diff)
	}
	if got := w.seen(); len(got) != 0 {
		t.Errorf("requests with a warm cache: %v", got)
	}
	arm := testWant()
	arm.Arch = "arm64"
	if _, err := Resolve(t.Context(), src, arm); err == nil {
		t.Error("another architecture was answered from this one's cache")
	}
}

func TestCacheBelievesMirrorsForAnHourAndDamagedRecordsNever(t *testing.T) {
	t.Parallel()
	c := cache{dir: t.TempDir()}
	c.putRecord(record{Key: "a", Digest: "x"})
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(c.recordPath("a"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.getRecord("a", cacheLifetime(true)); !ok {
		t.Error("an official digest is forgotten")
	}
	if _, ok := c.getRecord("a", cacheLifetime(false)); ok {
		t.Error("a mirror's digest is believed after two hours")
	}
	if err := os.WriteFile(c.recordPath("a"), []byte(`{"key":"a","digest"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.getRecord("a", 0); ok {
		t.Error("a damaged record is believed")
	}
	c.putRecord(record{Key: "gone", Absent: true})
	old = time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(c.recordPath("gone"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.getRecord("gone", 0); ok {
		t.Error("absence is believed after a day")
	}
}

// Answers are cached per way of fetching, and unconfirmed ones are not cached.
func TestOnlyConfirmedAnswersAreCachedAndPerWay(t *testing.T) {
	t.Parallel()
	bad, good := newWorld(t, testWant(), 2), newWorld(t, testWant(), 1)
	insecure := func(_ *Source, want *Want) { want.OverwriteRegistry, want.Insecure = "registry.k8s.io", true }
	mirrored := func(src *Source, want *Want) {
		*src, *want = otherLocation(bad)
	}
	for name, c := range map[string]struct {
		from    func(*Source, *Want)
		known   Digests
		trusted bool
		kept    int // of 8 files and 8 images
	}{
		"an insecure registry by an official name": {insecure, Digests{}, false, 8},
		"the same, taken at its word":              {insecure, Digests{}, true, 16},
		"the same, with all known":                 {insecure, published(t, bad), false, 16},
		"a mirror and a registry":                  {mirrored, Digests{}, false, 0},
		"a mirror with some of it known":           {mirrored, without(t, published(t, bad), "k8s.io/"), false, 6},
		"a mirror with something else": {mirrored,
			listing(t, "a table", digits("a")+"  "+kubeletName), true, 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, want := bad.source(), testWant()
			c.from(&src, &want)
			src.CacheDir, src.Known, src.Trusted = t.TempDir(), c.known, c.trusted
			_, err := Resolve(t.Context(), src, want)
			if (err == nil) != (c.kept == 16) {
				t.Fatalf("error %v", err)
			}
			kept, err := filepath.Glob(filepath.Join(src.CacheDir, "*.json"))
			if err != nil || len(kept) != c.kept {
				t.Errorf("%d records, want %d: %v", len(kept), c.kept, err)
			}
			official := good.source()
			official.CacheDir = src.CacheDir
			for _, i := range resolve(t, official, testWant()).Images {
				if _, rest, _ := strings.Cut(i.Name, "/"); i.Digest != good.digest(t, rest) {
					t.Errorf("%s is what came another way", i.Name)
				}
			}
		})
	}
}

// Only the source itself can say that it does not have a file.
func TestAnAbsenceIsCachedOfTrustedSourcesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	delete(w.files, crictlPath+".sha256")
	for trusted, kept := range map[bool]int{false: 15, true: 16} {
		src, want := otherLocation(w)
		src.CacheDir, src.Known, src.Trusted = t.TempDir(), published(t, w), trusted
		resolve(t, src, want)
		if records, _ := filepath.Glob(filepath.Join(src.CacheDir, "*.json")); len(records) != kept {
			t.Errorf("trusted %v: %d records, want %d", trusted, len(records), kept)
		}
	}
}

func TestResolveRefusesImageForAnotherArchitecture(t *testing.T) {
	t.Parallel()
	want := testWant()
	w := newWorld(t, want, 1)
	versions, err := VersionsFor(want.KubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	pause := image{registry: registryK8s, repository: "pause", tag: versions.Pause}
	w.push(t, pause, randomImage(t, newRand(5), "arm64"), false)
	if _, err := Resolve(t.Context(), w.source(), want); err == nil ||
		!strings.Contains(err.Error(), "linux/arm64 only") {
		t.Errorf("error %v, want one about the architecture", err)
	}
}

func TestWantAndSourceAreChecked(t *testing.T) {
	t.Parallel()
	good := testWant()
	tests := map[string]struct {
		change func(*Want, *Source)
		want   string
	}{
		"not semantic": {func(w *Want, _ *Source) { w.KubernetesVersion = "1.36" },
			"supported are 1.34, 1.35, 1.36"},
		"leading v":            {func(w *Want, _ *Source) { w.KubernetesVersion = "v1.36.3" }, "supported are"},
		"build metadata":       {func(w *Want, _ *Source) { w.KubernetesVersion = "1.36.3+x" }, "supported are"},
		"blank in front":       {func(w *Want, _ *Source) { w.KubernetesVersion = " 1.36.3" }, "supported are"},
		"line end in front":    {func(w *Want, _ *Source) { w.Kubelet = "\n1.36.3" }, "supported are"},
		"blank behind":         {func(w *Want, _ *Source) { w.Kubelet = "1.36.3 " }, "supported are"},
		"blank at containerd":  {func(w *Want, _ *Source) { w.Containerd = "2.4.2 " }, "supported are"},
		"mirror with a blank":  {func(_ *Want, s *Source) { s.Mirror = "https://m.example.com/a b" }, "not a base URL"},
		"unknown minor":        {func(w *Want, _ *Source) { w.KubernetesVersion = "1.99.0" }, "supported are"},
		"unknown architecture": {func(w *Want, _ *Source) { w.Arch = "mips" }, "amd64, arm64"},
		"mirror without host":  {func(_ *Want, s *Source) { s.Mirror = "mirror.example.com" }, "not a base URL"},
		"mirror with query":    {func(_ *Want, s *Source) { s.Mirror = "https://m/?x=1" }, "not a base URL"},
		"mirror without TLS": {func(_ *Want, s *Source) { s.Mirror = "http://m.example.com" },
			`mirror "http://m.example.com" uses plain HTTP; use https, or allow plain HTTP with --insecure-mirror`},
		"no password is shown": {func(_ *Want, s *Source) { s.Mirror = "http://me:secret@m.example.com" },
			`mirror "http://me:xxxxx@m.example.com" uses`},
		"this machine's mirror without TLS": {func(_ *Want, s *Source) {
			s.Mirror, s.Trusted = "http://127.0.0.1:1", true
		}, "--insecure-mirror"},
		"another protocol": {func(_ *Want, s *Source) { s.Mirror, s.InsecureMirror = "ftp://m.example.com", true },
			"not a base URL"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, src := good, Source{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				t.Error("a request was made")
				return nil, errors.New("no")
			})}
			test.change(&want, &src)
			if _, err := Resolve(t.Context(), src, want); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestChecksumReadsTheFormatsInUse(t *testing.T) {
	t.Parallel()
	sum, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	tests := map[string]struct {
		text string
		want string // "" means an error
	}{
		"alone":              {sum, sum},
		"alone with newline": {sum + "\n", sum},
		"upper case":         {strings.ToUpper(sum), sum},
		"named":              {sum + "  runc.amd64\n", sum},
		"binary mode":        {sum + " *runc.amd64\n", sum},
		"with directory":     {sum + "  ./out/runc.amd64\n", sum},
		"among others":       {other + "  runc.arm64\n" + sum + "  runc.amd64\n", sum},
		"only others":        {other + "  runc.arm64\n" + other + "  runc.s390x\n", ""},
		"another name":       {other + "  runc.arm64\n", ""},
		"too short":          {"abcd", ""},
		"HTML":               {"<html><body>please log in</body></html>", ""},
		"empty":              {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := findChecksum(test.text, "runc.amd64")
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
