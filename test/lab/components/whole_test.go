//go:build e2e && long

package components

import (
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestAVersionIsDownloaded makes a complete Kubernetes version from a mirror of the official locations. It builds only
// pause and agnhost, which are published as images.
func TestAVersionIsDownloaded(t *testing.T) {
	cache, err := DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	built, err := NewBuilder(cache, t.Logf).Build(t.Context(), DefaultKubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := NewMirror(built)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mirror)
	t.Cleanup(server.Close)
	builder := &Builder{Cache: NewCache(t.TempDir()), Log: t.Logf, Downloads: server.URL + "/", CNI: DefaultCNI}
	downloaded, err := builder.Build(t.Context(), DefaultKubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range downloaded.Bin {
		if name != "pause" && !strings.HasSuffix(filepath.Dir(file), "-downloaded-"+runtime.GOARCH) {
			t.Errorf("%s was built: %s", name, file)
		}
	}
	if len(downloaded.Files) != len(built.Files) || len(downloaded.Images) != len(built.Images) {
		t.Errorf("%d files and %d images, want %d and %d", len(downloaded.Files), len(downloaded.Images),
			len(built.Files), len(built.Images))
	}
}
