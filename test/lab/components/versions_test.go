package components

import (
	"path"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/release"
)

func TestVersionsMatchKubeone(t *testing.T) {
	for _, minor := range release.Supported() {
		kubernetes := minor + ".1"
		want, err := release.VersionsFor(kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		got := want
		got.Containerd, got.Runc, got.CNIPlugins = ContainerdVersion(kubernetes)[1:], RuncVersion[1:],
			CNIPluginsVersion[1:]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Kubernetes %s: internal/release wants (-), the lab builds (+):\n%s", minor, diff)
		}
	}
}

func TestNetworkPluginsMatchKubeone(t *testing.T) {
	for _, plugin := range plugins.All() {
		built, err := findNetworkPlugin(plugin.Name())
		if err != nil {
			continue // not in the lab
		}
		var have []string
		for _, file := range downloadsOf(built.cni) {
			have = append(have, path.Base(file.URL))
		}
		if built.images != nil {
			none := func(...string) layerSpec { return layerSpec{} }
			for _, image := range built.images(imageParts{program: none, plugin: none}) {
				have = append(have, image.Name+":"+image.Tag)
			}
		}
		have = append(have, built.urls...)
		for _, m := range built.manifests {
			have = append(have, m.URL)
		}
		for _, m := range plugins.Published(plugin.Name()) {
			if url := m.Host + "/" + m.Path; !slices.Contains(have, url) {
				t.Errorf("%s wants %s, the lab serves %q", plugin.Name(), url, have)
			}
		}
		for _, b := range plugin.Binaries() {
			if file := b.AssetFor(runtime.GOARCH); !slices.Contains(have, file) {
				t.Errorf("%s wants %s, the lab builds %q", plugin.Name(), file, have)
			}
		}
		for _, i := range plugin.Images() {
			if name := i.Repository + ":" + i.Tag; !slices.Contains(have, name) {
				t.Errorf("%s wants %s, the lab builds %q", plugin.Name(), name, have)
			}
		}
	}
}

func TestUnknownNetworkPluginsAreRefused(t *testing.T) {
	if CheckCNI(DefaultCNI) != nil || CheckCNI("other") == nil || CheckCNI("") == nil {
		t.Error("the lab's network plugins are not those of its table")
	}
}
