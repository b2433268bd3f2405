// Package plugintest provides stand-ins for the manifests that projects of network plugins publish.
package plugintest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
)

// Published returns the stand-ins for the published manifests of a plugin, which are in its testdata. root is the root
// of the repository, relative to the package of the test. Charts have none.
func Published(t testing.TB, root, plugin string) []desired.PublishedManifest {
	t.Helper()
	var out []desired.PublishedManifest
	if slices.Contains(plugins.Charted(), plugin) {
		return nil
	}
	for _, m := range plugins.Published(plugin, "") {
		path := filepath.Join(root, "internal", "addons", "network", plugin, "testdata", plugin+".yaml")
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		out = append(out, desired.PublishedManifest{
			Name: m.Name, Version: m.Version, URL: "https://" + m.Host + "/" + m.Path, Content: content,
			SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		})
	}
	return out
}
