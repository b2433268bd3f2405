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
		for _, m := range plugins.Published(plugin.Name(), "") {
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
	for cni, known := range map[string]bool{
		DefaultCNI: true, "cilium": true, "cilium@1.20.1": true, "other": false, "": false, "cilium@": false,
		"cilium@v1": false, "flannel@0.26.7": false,
	} {
		if err := CheckCNI(cni); (err == nil) != known {
			t.Errorf("%q: %v", cni, err)
		}
	}
}

// A manifest names the version of a plugin only if the lab was made for one.
func TestVersionOfNetworkPlugin(t *testing.T) {
	for cni, want := range map[string]string{
		"flannel":       "flannel: {}",
		"cilium":        "cilium: {helmValues: {securityContext: {privileged: true}}}",
		"cilium@1.20.1": "cilium: {version: 1.20.1, helmValues: {securityContext: {privileged: true}}}",
	} {
		if got := CNISettings(cni); got != want {
			t.Errorf("%s: %s", cni, got)
		}
	}
	p, err := findNetworkPlugin("cilium@1.20.1")
	if err != nil {
		t.Fatal(err)
	}
	if p.urls[0] != "helm.cilium.io/cilium-1.20.1.tgz" || p.recipes[0].Version != "v1.20.1" {
		t.Errorf("%v, %+v", p.urls, p.recipes)
	}
}
