package release

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// published returns the digests of what a world publishes, under the names of lists.
func published(t *testing.T, w *world) Digests {
	t.Helper()
	var lines []string
	a := resolve(t, w.source(), testWant())
	for _, b := range a.Binaries {
		lines = append(lines, b.SHA256+"  "+strings.TrimPrefix(b.URL, "https://"))
	}
	for _, i := range a.Images {
		lines = append(lines, strings.TrimPrefix(i.Digest, digestPrefix)+"  "+i.Name+" linux/amd64")
	}
	return listing(t, "a table", lines...)
}

// without omits digests with the text in their name.
func without(t *testing.T, d Digests, text string) Digests {
	t.Helper()
	var lines []string
	for line := range strings.Lines(listOf(d)) {
		if !strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return listing(t, "a table", lines...)
}

// unknownOf returns the parts of a release that only their source confirms.
func unknownOf(a desired.Artifacts) (out []string) {
	for _, p := range a.PartsFor(desired.ControlPlane) {
		if !p.Known {
			out = append(out, p.What)
		}
	}
	return out
}

// otherLocation is a place other than the official locations.
func otherLocation(w *world) (Source, Want) {
	src, want := w.source(), testWant()
	src.Mirror, want.OverwriteRegistry = "https://mirror.example.com", "registry.example.com"
	src.Transport = roundTrip(w.asMirror)
	return src, want
}

func TestWhatIsKnownMustMatchWhateverTheSource(t *testing.T) {
	t.Parallel()
	good, bad := newWorld(t, testWant(), 1), newWorld(t, testWant(), 2)
	known := published(t, good)
	for name, resolveFrom := range map[string]func(*world, Digests) (desired.Artifacts, error){
		"official": func(w *world, known Digests) (desired.Artifacts, error) {
			src := w.source()
			src.Known = known
			return Resolve(t.Context(), src, testWant())
		},
		"mirror": func(w *world, known Digests) (desired.Artifacts, error) {
			src, want := otherLocation(w)
			src.Known, src.Trusted = known, true // trust does not override known digests
			return Resolve(t.Context(), src, want)
		},
		"bundle": func(w *world, known Digests) (desired.Artifacts, error) {
			path := bundleFile(t, t.TempDir(), "b.tar", w, testWant())
			l, err := OpenLibrary(t.Context(), LibraryOptions{Known: known}, path)
			if err != nil {
				return desired.Artifacts{}, err
			}
			defer func() { _ = l.Close() }()
			return l.For(testWant())
		},
		"to make a bundle": func(w *world, known Digests) (desired.Artifacts, error) {
			src := w.source()
			src.Known = known
			index, err := Create(t.Context(), &bytes.Buffer{}, src, testWant(), CreateOptions{SpoolDir: t.TempDir()})
			return index.Artifacts, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := resolveFrom(good, known)
			if err != nil || len(unknownOf(a)) > 0 || len(a.Binaries)+len(a.Images) != 16 {
				t.Fatalf("%d binaries, %d images, unknown %q: %v", len(a.Binaries), len(a.Images), unknownOf(a), err)
			}
			// Unknown parts work, and are marked.
			a, err = resolveFrom(good, without(t, without(t, known, "kubelet"), "pause"))
			got := strings.Join(unknownOf(a), ", ")
			if err != nil || !regexp.MustCompile(`^kubelet 1.36.3, image [a-z0-9.]+/pause:3.10.2$`).MatchString(got) {
				t.Errorf("unknown are %q: %v", got, err)
			}
			// Altered parts are refused, files as well as images.
			var mismatch *MismatchError
			_, err = resolveFrom(bad, known)
			if !errors.As(err, &mismatch) || mismatch.Name != kubeletName ||
				mismatch.Known != good.sum(kubeletPath()) || mismatch.SHA256 != bad.sum(kubeletPath()) {
				t.Errorf("another kubelet: %v", err)
			}
			image := "registry.k8s.io/etcd:3.6.8-0 linux/amd64"
			line := strings.TrimPrefix(good.digest(t, "etcd:3.6.8-0"), digestPrefix) + "  " + image
			_, err = resolveFrom(bad, listing(t, "a table", line))
			if !errors.As(err, &mismatch) || mismatch.Name != image {
				t.Errorf("another image: %v", err)
			}
		})
	}
}

func TestAMirrorIsNotTakenAtItsWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	known := published(t, w)
	for name, c := range map[string]struct {
		change func(*Source, *Want)
		says   string // "" is no error
	}{
		"nothing is known": {func(*Source, *Want) {},
			"cannot check downloads from mirror.example.com and registry.example.com: there is no known digest for " +
				"kubelet 1.36.3, kubeadm 1.36.3, kubectl 1.36.3 and 13 more; pass a list of trusted digests with " +
				"--digests FILE, or trust this source with --trust-source"},
		"all is known":      {func(s *Source, _ *Want) { s.Known = known }, ""},
		"taken at its word": {func(s *Source, _ *Want) { s.Trusted = true }, ""},
		"one image is unknown": {func(s *Source, _ *Want) { s.Known = without(t, known, "pause") },
			"cannot check downloads from registry.example.com: there is no known digest for " +
				"image registry.k8s.io/pause:3.10.2; "},
		"one file is unknown": {func(s *Source, _ *Want) { s.Known = without(t, known, "runc") },
			"cannot check downloads from mirror.example.com: there is no known digest for runc 1.5.2; "},
		"only a registry": {func(s *Source, _ *Want) { s.Mirror = "" },
			"cannot check downloads from registry.example.com: there is no known digest for " +
				"image registry.k8s.io/kube-apiserver:v1.36.3, "},
		"only a mirror": {func(_ *Source, w *Want) { w.OverwriteRegistry = "" },
			"cannot check downloads from mirror.example.com: there is no known digest for kubelet 1.36.3, "},
		"only a registry for CoreDNS": {func(s *Source, w *Want) {
			s.Mirror, w.OverwriteRegistry, w.DNSRepository = "", "", "dns.example.com/coredns"
		}, "cannot check downloads from dns.example.com: there is no known digest for " +
			"image registry.k8s.io/coredns/coredns:v1.14.2; "},
		"where CoreDNS is anyway": {func(s *Source, w *Want) {
			s.Mirror, w.OverwriteRegistry, w.DNSRepository = "", "", "registry.k8s.io/coredns"
		}, ""},
		"an insecure registry by an official name": {func(s *Source, w *Want) {
			s.Mirror, w.OverwriteRegistry, w.Insecure = "", "registry.k8s.io", true
		}, "cannot check downloads from registry.k8s.io: there is no known digest for " +
			"image registry.k8s.io/kube-apiserver:v1.36.3, "},
		"CoreDNS in such a registry": {func(s *Source, w *Want) {
			s.Mirror, w.OverwriteRegistry, w.Insecure, w.DNSRepository = "", "ghcr.io", true, "ghcr.io/coredns"
			s.Known = without(t, known, "coredns")
		}, "cannot check downloads from ghcr.io: there is no known digest for " +
			"image registry.k8s.io/coredns/coredns:v1.14.2; "},
		"an official name, securely": {func(s *Source, w *Want) {
			s.Mirror, w.OverwriteRegistry = "", "registry.k8s.io"
			s.Known = without(t, known, "kube-apiserver")
		}, ""},
		"neither": {func(s *Source, w *Want) { s.Mirror, w.OverwriteRegistry = "", "" }, ""},
		"known for another arch": {func(s *Source, _ *Want) {
			s.Known = listing(t, "a table", strings.ReplaceAll(listOf(known), "amd64", "arm64"))
		}, "and 13 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for verb, run := range map[string]func(Source, Want) error{
				"resolve": func(s Source, w Want) error { _, err := Resolve(t.Context(), s, w); return err },
				"create": func(s Source, w Want) error {
					_, err := Create(t.Context(), &bytes.Buffer{}, s, w, CreateOptions{SpoolDir: t.TempDir()})
					return err
				},
			} {
				src, want := otherLocation(w)
				c.change(&src, &want)
				err := run(src, want)
				var untrusted *UntrustedError
				if c.says == "" && err != nil ||
					c.says != "" && (!errors.As(err, &untrusted) || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s: got %v, want %q", verb, err, c.says)
				}
			}
		})
	}
}

// A bundle may have other versions of what goes with Kubernetes than this program would choose.
func TestAPartOfABundleIsKnownByTheVersionThatItHas(t *testing.T) {
	t.Parallel()
	made := testWant()
	made.Containerd = "2.2.1"
	path := bundleFile(t, t.TempDir(), "made.tar", lasting(t, testWant(), made), made)
	name := "github.com/containerd/containerd/releases/download/v2.2.1/containerd-2.2.1-linux-amd64.tar.gz"
	l, err := OpenLibrary(t.Context(), LibraryOptions{Known: listing(t, "a table", digits("a")+"  "+name)}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = l.For(testWant())
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || mismatch.Name != name || mismatch.Source != "bundle "+path {
		t.Errorf("got %v", err)
	}
}

func TestBundlesAreThoseWhoseDigestsAreGiven(t *testing.T) {
	t.Parallel()
	older := testWant()
	older.KubernetesVersion = "1.36.1"
	w, dir := lasting(t, testWant(), older), t.TempDir()
	a, b := bundleFile(t, dir, "a.tar", w, testWant()), bundleFile(t, dir, "b.tar", w, older)
	sumOf := func(path string) string {
		created, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return (&world{files: map[string][]byte{"x": created}}).sum("x")
	}
	tampered := bundleFile(t, dir, "tampered.tar", w, testWant())
	if err := os.WriteFile(tampered, []byte("no bundle at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		given, paths []string
		says         string // "" is no error
	}{
		"none given":          {nil, []string{a, b}, ""},
		"one":                 {[]string{sumOf(a)}, []string{a}, ""},
		"upper case":          {[]string{strings.ToUpper(sumOf(a))}, []string{a}, ""},
		"two in any order":    {[]string{sumOf(b), sumOf(a)}, []string{a, b}, ""},
		"one for two":         {[]string{sumOf(a)}, []string{a, b}, "bundle " + b + " has sha256 " + sumOf(b)},
		"another":             {[]string{digits("a")}, []string{a}, "differs from the given one (" + digits("a") + ")"},
		"one too many":        {[]string{sumOf(a), digits("a")}, []string{a}, "no bundle has sha256 " + digits("a")},
		"without a bundle":    {[]string{sumOf(a)}, nil, "no bundle has sha256 " + sumOf(a)},
		"no digest":           {[]string{"abc"}, []string{a}, `"abc" is not a sha256`},
		"nothing":             {[]string{""}, []string{a}, `"" is not a sha256`},
		"a name":              {[]string{"sha256:" + sumOf(a)}, []string{a}, "is not a sha256"},
		"before it is read":   {[]string{sumOf(a)}, []string{tampered}, "bundle " + tampered + " has sha256 "},
		"no file and its sum": {[]string{sumOf(a)}, []string{dir + "/none"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := OpenLibrary(t.Context(), LibraryOptions{SHA256: c.given}, c.paths...)
			if err == nil {
				_ = l.Close()
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenLibrary(ctx, LibraryOptions{SHA256: []string{sumOf(a)}}, a); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}
