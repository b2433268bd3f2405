package release

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// bundleFile writes a bundle of the world's release under a unique name.
func bundleFile(t *testing.T, dir, name string, w *world, want Want) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, createBytes(t, w.source(), want), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func library(t *testing.T, paths ...string) *Library {
	t.Helper()
	l, err := OpenLibrary(t.Context(), LibraryOptions{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// lasting publishes several releases in one world: shared parts are the same files.
func lasting(t *testing.T, wants ...Want) *world {
	t.Helper()
	w := newWorld(t, wants[0], 1)
	for n, want := range wants[1:] {
		more := newWorld(t, want, int64(n+2))
		for path, content := range more.files {
			if _, ok := w.files[path]; !ok {
				w.files[path] = content
			}
		}
		versions, err := want.matchingVersions()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range want.releaseImages(versions) {
			if _, ok := w.images[i.repository+":"+i.tag]; !ok {
				w.push(t, i, more.images[i.repository+":"+i.tag], false)
			}
		}
	}
	return w
}

func versionsOf(a desired.Artifacts) map[string]string {
	out := map[string]string{}
	for _, b := range a.Binaries {
		out[b.Name] = b.Version
	}
	return out
}

func TestALibraryOfOneBundleIsThatBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	l := library(t, bundleFile(t, t.TempDir(), "a.tar", w, testWant()))
	all, err := l.For(testWant())
	if err != nil {
		t.Fatal(err)
	}
	if !all.Pushed {
		t.Error("what a bundle has is uploaded")
	}
	all.Pushed = l.Indexes()[0].Artifacts.Pushed
	if diff := cmp.Diff(l.Indexes()[0].Artifacts, all); diff != "" {
		t.Errorf("the release that the bundle was made for (-bundle +for):\n%s", diff)
	}
	less := testWant()
	less.CNI, less.KubeProxy, less.OverwriteRegistry = "external", false, "reg.example.com:5000/k8s/"
	got, err := l.For(less)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range got.Images {
		names = append(names, i.Name)
		if i.Source != i.Name || len(i.Blobs) == 0 {
			t.Errorf("%s: source %s, %d blobs", i.Name, i.Source, len(i.Blobs))
		}
	}
	want := []string{
		"reg.example.com:5000/k8s/kube-apiserver:v1.36.3", "reg.example.com:5000/k8s/kube-controller-manager:v1.36.3",
		"reg.example.com:5000/k8s/kube-scheduler:v1.36.3", "reg.example.com:5000/k8s/etcd:3.6.8-0",
		"reg.example.com:5000/k8s/pause:3.10.2", "reg.example.com:5000/k8s/coredns/coredns:v1.14.2",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if _, ok := got.Binary("cni-plugin-flannel"); ok {
		t.Error("flannel's plugin is there for another CNI")
	}
	less.DNSRepository = "dns.example.com"
	named, err := l.For(less)
	if err != nil {
		t.Fatal(err)
	}
	was, is := got.Images[5], named.Images[5]
	if is.Name != "dns.example.com/coredns:v1.14.2" || is.Source != is.Name || is.Digest != was.Digest {
		t.Errorf("CoreDNS is %+v, was %+v", is, was)
	}
	named.Images[5] = was
	if diff := cmp.Diff(got, named); diff != "" {
		t.Errorf("other parts are others: %s", diff)
	}
}

// A lagging worker gets its kubelet from an older bundle and kubeadm from the cluster's. A container runtime with a set
// version comes from any bundle that has it.
func TestEachComponentIsFoundByItself(t *testing.T) {
	t.Parallel()
	current, older, runtime := testWant(), testWant(), testWant()
	older.KubernetesVersion, runtime.Containerd = "1.35.4", "2.2.1"
	runtime.KubernetesVersion = "1.36.1"
	w, dir := lasting(t, current, older, runtime), t.TempDir()
	l := library(t, bundleFile(t, dir, "older.tar", w, older), bundleFile(t, dir, "current.tar", w, current),
		bundleFile(t, dir, "runtime.tar", w, runtime))
	if err := l.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(*Want)
		want   map[string]string
	}{
		"the cluster's versions": {
			func(*Want) {},
			map[string]string{"kubelet": "1.36.3", "kubeadm": "1.36.3", "kubectl": "1.36.3", "containerd": "2.4.2"},
		},
		"an older kubelet": {
			func(w *Want) { w.Kubelet = "1.35.4" },
			map[string]string{"kubelet": "1.35.4", "kubeadm": "1.36.3", "containerd": "2.4.2"},
		},
		"another container runtime": {
			func(w *Want) { w.Containerd = "2.2.1" }, map[string]string{"kubelet": "1.36.3", "containerd": "2.2.1"},
		},
		"both, on a worker": {
			func(w *Want) { w.Kubelet, w.Containerd, w.Role = "1.35.4", "2.3.7", desired.Worker },
			map[string]string{"kubelet": "1.35.4", "kubeadm": "1.36.3", "kubectl": "", "containerd": "2.3.7"},
		},
		"an older cluster": {
			func(w *Want) { w.KubernetesVersion = "1.35.4" },
			map[string]string{"kubelet": "1.35.4", "kubeadm": "1.35.4", "containerd": "2.3.7"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wish := testWant()
			c.change(&wish)
			got, err := l.For(wish)
			if err != nil {
				t.Fatal(err)
			}
			have := versionsOf(got)
			for name, version := range c.want {
				if have[name] != version {
					t.Errorf("%s %q, want %q", name, have[name], version)
				}
			}
			for _, b := range got.Binaries {
				if blob, ok := l.Blob(b.SHA256); !ok || blob.Size() != b.Size {
					t.Errorf("%s %s cannot be read", b.Name, b.Version)
				}
			}
			for _, i := range got.Images {
				if wish.Role == desired.Worker && !i.NeededBy(desired.Worker) {
					t.Errorf("a worker gets %s", i.Name)
				}
				for _, part := range i.Blobs {
					if _, ok := l.Blob(part.Digest); !ok {
						t.Errorf("a part of %s cannot be read", i.Name)
					}
				}
			}
		})
	}
}

// Parts that depend on Kubernetes come from the bundle with that version, even if kubeone would choose others now.
func TestCompanionsAreThoseOfTheBundle(t *testing.T) {
	t.Parallel()
	made := testWant()
	made.Containerd = "2.2.1"
	w, dir := lasting(t, testWant(), made), t.TempDir()
	got, err := library(t, bundleFile(t, dir, "made.tar", w, made)).For(testWant())
	if err != nil {
		t.Fatal(err)
	}
	if have := versionsOf(got)["containerd"]; have != "2.2.1" {
		t.Errorf("containerd %s, the bundle has 2.2.1", have)
	}
}

// A part that the bundle of the desired version lacks may be in another one.
func TestALackingPartComesFromAnotherBundle(t *testing.T) {
	t.Parallel()
	small, full := testWant(), testWant()
	small.CNI, small.KubeProxy = "external", false
	full.KubernetesVersion = "1.36.1"
	w, dir := lasting(t, testWant(), full), t.TempDir()
	l := library(t, bundleFile(t, dir, "small.tar", w, small), bundleFile(t, dir, "full.tar", w, full))
	wish := testWant()
	wish.KubeProxy = false
	got, err := l.For(wish)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.Binary("cni-plugin-flannel"); !ok {
		t.Error("flannel's plugin is in the other bundle")
	}
	// kube-proxy's version follows from that of Kubernetes: the other bundle's is of no use.
	_, err = l.For(testWant())
	var missing *MissingError
	if !errors.As(err, &missing) || !slices.Equal(missing.Parts, []string{"image registry.k8s.io/kube-proxy:v1.36.3"}) {
		t.Errorf("error %v, want one that names kube-proxy", err)
	}
}

func TestTwoDifferentFilesOfOneVersionAreAConflict(t *testing.T) {
	t.Parallel()
	one, two, dir := newWorld(t, testWant(), 1), newWorld(t, testWant(), 2), t.TempDir()
	a, b := bundleFile(t, dir, "a.tar", one, testWant()), bundleFile(t, dir, "b.tar", two, testWant())
	_, err := OpenLibrary(t.Context(), LibraryOptions{}, a, b)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.Paths != [2]string{a, b} ||
		conflict.What != "kubelet 1.36.3 for linux/amd64" {
		t.Fatalf("error %v, want a conflict about the kubelet", err)
	}
	for _, says := range []string{a, b, "kubelet 1.36.3 for linux/amd64", conflict.Digests[0], conflict.Digests[1]} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not name %s", err, says)
		}
	}
	// The same holds for images, and for other versions of Kubernetes.
	for path := range one.files {
		two.files[path] = one.files[path]
	}
	_, err = OpenLibrary(t.Context(), LibraryOptions{}, a, bundleFile(t, dir, "c.tar", two, testWant()))
	if !errors.As(err, &conflict) || conflict.What != "image registry.k8s.io/kube-apiserver:v1.36.3 for linux/amd64" {
		t.Errorf("error %v, want a conflict about an image", err)
	}
	if l, err := OpenLibrary(t.Context(), LibraryOptions{}, a, a); err != nil {
		t.Errorf("the same bundle twice: %v", err)
	} else if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatNoBundleHasIsNamedWithWhatTheyHave(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, testWant(), 1), t.TempDir()
	small := testWant()
	small.CNI, small.KubeProxy = "external", false
	path := bundleFile(t, dir, "small.tar", w, small)
	l := library(t, path)
	has := path + " has Kubernetes 1.36.3 and containerd 2.4.2 for linux/amd64, network plugin external, no kube-proxy"
	for name, test := range map[string]struct {
		change func(*Want)
		says   string
	}{
		"version": {
			func(w *Want) { w.KubernetesVersion = "1.36.4" },
			"no bundle has kubelet 1.36.4, kubeadm 1.36.4, kubectl 1.36.4 and 3 more for Kubernetes 1.36.4 " +
				"on linux/amd64: " + has,
		},
		"architecture": {
			func(w *Want) { w.Arch = "arm64" },
			"no bundle has kubelet 1.36.3, kubeadm 1.36.3, kubectl 1.36.3 and 9 more for Kubernetes 1.36.3 " +
				"on linux/arm64: " + has,
		},
		"network plugin": {
			func(w *Want) { w.CNI = "flannel" },
			"no bundle has cni-plugin-flannel 1.9.1-flannel1, image ghcr.io/flannel-io/flannel:v0.26.7 for " +
				"Kubernetes 1.36.3 on linux/amd64: " + has,
		},
		"kube-proxy": {
			func(w *Want) { w.KubeProxy = true },
			"no bundle has image registry.k8s.io/kube-proxy:v1.36.3 for Kubernetes 1.36.3 on linux/amd64: " + has,
		},
		"kubelet": {func(w *Want) { w.Kubelet = "1.35.4" },
			"no bundle has kubelet 1.35.4 for Kubernetes 1.36.3 on linux/amd64: " + has},
		"containerd": {func(w *Want) { w.Containerd = "2.3.7" },
			"no bundle has containerd 2.3.7 for Kubernetes 1.36.3 on linux/amd64: " + has},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := small
			test.change(&want)
			_, err := l.For(want)
			var missing *MissingError
			if !errors.As(err, &missing) || !strings.HasPrefix(err.Error(), test.says) {
				t.Errorf("got  %v\nwant %s", err, test.says)
			}
		})
	}
}

func TestAnAlteredPartOfALibraryIsFound(t *testing.T) {
	t.Parallel()
	older := testWant()
	older.KubernetesVersion = "1.36.1"
	w, dir := lasting(t, testWant(), older), t.TempDir()
	a, b := bundleFile(t, dir, "a.tar", w, testWant()), bundleFile(t, dir, "b.tar", w, older)
	index := library(t, a, b).Indexes()[1]
	kubelet, _ := index.Artifacts.Binary(desired.BinaryKubelet)
	second := library(t, b)
	at := second.bundles[0].offsets[kubelet.SHA256]
	f, err := os.OpenFile(b, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("altered"), at.offset); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var altered *AlteredError
	if err := library(t, a, b).Verify(t.Context()); !errors.As(err, &altered) || altered.Path != b ||
		len(altered.Entries) != 1 {
		t.Errorf("error %v, want one that names the kubelet in %s", err, b)
	}
}

func TestContainerdMustSuitTheKubelet(t *testing.T) {
	t.Parallel()
	for _, minor := range Supported() {
		v, err := VersionsFor(minor + ".0")
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckContainerd(minor+".0", v.Containerd); err != nil {
			t.Errorf("the one that this program chooses: %v", err)
		}
		for _, wrong := range []string{"1.7.28", "1.6.0", "3.0.0", "2", "v2.1.0", "", "2.1.0+build"} {
			var unsupported *UnsupportedError
			if err := CheckContainerd(minor+".0", wrong); !errors.As(err, &unsupported) {
				t.Errorf("kubelet %s with containerd %q: %v", minor, wrong, err)
			}
		}
		want := Want{KubernetesVersion: minor + ".0", Arch: "amd64", Containerd: "1.7.28"}
		if _, err := want.matchingVersions(); err == nil ||
			!strings.Contains(err.Error(),
				`containerd version "1.7.28" is not supported; supported are 2.0 and newer`) {
			t.Errorf("%s: %v", minor, err)
		}
	}
	if err := CheckContainerd("1.20.0", "2.1.0"); err == nil {
		t.Error("an unknown kubelet is accepted")
	}
}
