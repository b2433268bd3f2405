package components

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNearestVersion(t *testing.T) {
	available := []string{"v1.14.3", "v1.15.0", "v1.14.4-rc.1", "v1.12.0", "v2.0.0", "nonsense"}
	for want, expected := range map[string]string{
		"v1.14.3": "v1.14.3", // exact
		"v1.14.2": "v1.14.3", // the oldest newer release
		"v1.14.4": "v1.15.0", // never a pre-release
		"v1.16.0": "v1.15.0", // the newest older release if none is newer
		"v3.0.0":  "",
		"bad":     "",
	} {
		if got := nearestVersion(want, available); got != expected {
			t.Errorf("nearest(%s) = %q, want %q", want, got, expected)
		}
	}
}

func TestKubeadmImageTags(t *testing.T) {
	got := tagsByImage("registry.k8s.io/coredns/coredns:v1.14.2\nregistry.k8s.io/pause:3.10.2\n" +
		"localhost:5000/etcd:3.6.8-0\n")
	want := map[string]string{"coredns": "v1.14.2", "pause": "3.10.2", "etcd": "3.6.8-0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModuleFileRepeatsReplaces(t *testing.T) {
	upstream := `{"Godebug":[{"Key":"default","Value":"go1.26"}],"Replace":[
		{"Old":{"Path":"k8s.io/api"},"New":{"Path":"./staging/src/k8s.io/api"}},
		{"Old":{"Path":"a.io/b","Version":"v1.0.0"},"New":{"Path":"c.io/d","Version":"v1.2.0"}}]}`
	got, err := moduleFile(Recipe{Module: "k8s.io/kubernetes", Version: "v1.36.3"}, []byte(upstream))
	if err != nil {
		t.Fatal(err)
	}
	want := `module build

go ` + goVersion + `

godebug default=go1.26
require k8s.io/kubernetes v1.36.3
replace a.io/b v1.0.0 => c.io/d v1.2.0
replace k8s.io/api => k8s.io/api v0.36.3
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	without, err := moduleFile(Recipe{Module: "x.io/y", Version: "v1.0.0", Unreplaced: []string{"a.io/b"}},
		[]byte(upstream))
	if err != nil || strings.Contains(string(without), "a.io/b") {
		t.Errorf("an unwanted replace directive was repeated: %v\n%s", err, without)
	}
	other, err := moduleFile(Recipe{Module: "x.io/y", Version: "v1.0.0"},
		[]byte(`{"Replace":[{"Old":{"Path":"x.io/y/api"},"New":{"Path":"./api"}}]}`))
	if err != nil || strings.Contains(string(other), "replace") {
		t.Errorf("a folder of another project was replaced: %v\n%s", err, other)
	}
}

func TestProgramName(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3": "server", "k8s.io/kubernetes/cmd/kubelet": "kubelet", "x.io/v": "v",
	} {
		if got := programName(pkg); got != want {
			t.Errorf("programName(%s) = %s, want %s", pkg, got, want)
		}
	}
}

func TestRecipeDigestChangesWithEveryField(t *testing.T) {
	seen := map[string]bool{}
	base := kubernetesRecipe("1.36.3")
	recipes := []Recipe{base, kubernetesRecipe("1.36.1")}
	tags, cgo, flags := base, base, base
	tags.Tags, cgo.CGO, flags.LDFlags = "x", true, ""
	recipes = append(recipes, tags, cgo, flags)
	for _, recipe := range recipes {
		if seen[recipe.Digest()] {
			t.Errorf("two recipes have the digest %s", recipe.Digest())
		}
		seen[recipe.Digest()] = true
	}
	if base.Digest() != kubernetesRecipe("1.36.3").Digest() {
		t.Error("a recipe's digest is not the same twice")
	}
}

func TestLibraryPath(t *testing.T) {
	for line, want := range map[string]string{
		"\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)": "/lib/x86_64-linux-gnu/libc.so.6",
		"\t/lib64/ld-linux-x86-64.so.2 (0x00007f)":                  "/lib64/ld-linux-x86-64.so.2",
		"\tlinux-vdso.so.1 (0x00007f)":                              "",
		"\tstatically linked":                                       "",
	} {
		if got, _ := libraryPath(line); got != want {
			t.Errorf("libraryPath(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestCacheFillsEntryOnce(t *testing.T) {
	cache := NewCache(t.TempDir())
	if _, err := cache.Entry(t.Context(), "kind", "key", func(string) error {
		return errors.New("broken")
	}); err == nil {
		t.Fatal("no error")
	}
	var mu sync.Mutex
	var fills int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := cache.Entry(context.Background(), "kind", "key", func(dir string) error {
				mu.Lock()
				fills++
				mu.Unlock()
				return os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644)
			})
			if err != nil || !fileExists(filepath.Join(dir, "file")) {
				t.Errorf("entry %s: %v", dir, err)
			}
		})
	}
	all.Wait()
	if fills != 1 {
		t.Errorf("the entry was filled %d times", fills)
	}
}

func TestEqualLayersMakeEqualArchives(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	layer := layerSpec{
		Files: map[string]string{"usr/bin/a": source, "opt/b": source},
		Links: map[string]string{"bin": "usr/bin"},
	}
	var first, second bytes.Buffer
	if err := errors.Join(writeTar(&first, layer), writeTar(&second, layer)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same layer made two archives")
	}
}

func TestEachTagIsAnImage(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{}
	for _, tag := range []string{"3.6.6-0", "3.6.8-0", "3.6.8-0"} {
		image, err := assembleImage(imageSpec{
			Name:   "etcd",
			Tag:    tag,
			Layers: []layerSpec{{Files: map[string]string{"etcd": source}}},
		}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[digest.String()] = true
	}
	if len(digests) != 2 {
		t.Errorf("two tags, one of them twice, made %d images, want 2", len(digests))
	}
}
