package components

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// mirrorOf serves downloads whose programs contain their own names. It returns the address with a trailing slash.
func mirrorOf(t *testing.T, downloads ...Download) string {
	t.Helper()
	dir := t.TempDir()
	builder := &Builder{Cache: NewCache(t.TempDir())}
	set := &Set{Bin: map[string]string{}}
	for _, file := range downloads {
		for program := range file.Members {
			set.Bin[program] = filepath.Join(dir, program)
			if err := os.WriteFile(set.Bin[program], []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := builder.addFile(t.Context(), set, file, ""); err != nil {
			t.Fatal(err)
		}
	}
	mirror, err := NewMirror(set)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mirror)
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// withoutSource prevents builds: no module is available.
func withoutSource(t *testing.T) {
	t.Helper()
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "")
}

func TestDownloadLocations(t *testing.T) {
	withoutSource(t)
	kubernetes := kubernetesRecipe("1.36.3")
	delete(kubernetes.Packages, "agnhost")
	recipes := []Recipe{
		kubernetes, etcdRecipe("v3.6.8"), coreDNSRecipe("v1.14.2"), containerdRecipe("v2.4.2"), runcRecipe(), cniRecipe(),
	}
	for _, plugin := range networkPlugins() {
		for _, recipe := range slices.Concat(plugin.cni, plugin.recipes) {
			if len(recipe.Downloads) > 0 { // others are published as images only
				recipes = append(recipes, recipe)
			}
		}
	}
	for _, recipe := range recipes {
		builder := &Builder{Cache: NewCache(t.TempDir()), Downloads: mirrorOf(t, recipe.Downloads...)}
		dir, err := builder.binariesDir(t.Context(), recipe)
		if err != nil {
			t.Errorf("%s: %v", recipe.Name, err)
			continue
		}
		for program := range recipe.Packages {
			content, err := os.ReadFile(filepath.Join(dir, program))
			if err != nil || string(content) != program {
				t.Errorf("%s: %s has %q: %v", recipe.Name, program, content, err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != len(recipe.Packages) {
			t.Errorf("%s: %d files, want %d: %v", recipe.Name, len(entries), len(recipe.Packages), err)
		}
	}
}

func TestUnreachableDownloadIsBuiltFromSource(t *testing.T) {
	withoutSource(t)
	none := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(none.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for what, base := range map[string]string{"404": none.URL + "/", "nothing listens": gone.URL + "/"} {
		var said []string
		builder := &Builder{Cache: NewCache(t.TempDir()), Downloads: base, Log: func(format string, args ...any) {
			said = append(said, fmt.Sprintf(format, args...))
		}}
		_, err := builder.binariesDir(t.Context(), runcRecipe())
		if err == nil || !strings.Contains(err.Error(), "github.com/opencontainers/runc@"+RuncVersion) {
			t.Errorf("%s: %v, want an error of the build", what, err)
		}
		text := strings.Join(said, "\n")
		for _, want := range []string{
			"download github.com/opencontainers/runc/", "building runc " + RuncVersion + " from source",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q to be said:\n%s", what, want, text)
			}
		}
	}
}

func TestUnreachableHostIsTriedOnce(t *testing.T) {
	var asked atomic.Int32
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(hangsUp.Close)
	builder := &Builder{Cache: NewCache(t.TempDir()), Downloads: hangsUp.URL + "/"}
	for range 3 {
		if _, err := builder.downloadedDir(t.Context(), runcRecipe()); err == nil {
			t.Fatal("a download without an answer went well")
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestDownloadIsVerified(t *testing.T) {
	file := runcDownload()
	for what, test := range map[string]struct{ sums, want string }{
		"another digest": {strings.Repeat("0", 64) + " *runc.amd64\n", "its SHA-256 is"},
		"no digest":      {strings.Repeat("0", 64) + " *runc.other\n", "has no SHA-256 of it"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256sum") {
				fmt.Fprint(w, strings.ReplaceAll(test.sums, "runc.amd64", filepath.Base(file.URL)))
				return
			}
			fmt.Fprint(w, "not runc")
		}))
		t.Cleanup(server.Close)
		cache := NewCache(t.TempDir())
		_, err := (&Builder{Cache: cache, Downloads: server.URL + "/"}).downloadedDir(t.Context(), runcRecipe())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
		if left, _ := filepath.Glob(cache.Path("bin", "*", "*")); len(left) > 0 {
			t.Errorf("%s: %v is left", what, left)
		}
	}
}

func TestIncompleteArchiveFails(t *testing.T) {
	wanted := coreDNSDownload("v1.14.2")
	served := wanted
	served.Members = map[string]string{"other": "other"}
	builder := &Builder{Cache: NewCache(t.TempDir()), Downloads: mirrorOf(t, served)}
	_, err := builder.downloadedDir(t.Context(), coreDNSRecipe("v1.14.2"))
	if err == nil || !strings.Contains(err.Error(), "the archive lacks coredns") {
		t.Error(err)
	}
}
