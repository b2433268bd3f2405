package plugins

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

// cluster returns a cluster with the plugin, its images and a stand-in for its published manifest.
func cluster(t *testing.T, p network.Plugin) desired.Cluster {
	t.Helper()
	c := desired.Cluster{
		Network: desired.Network{PodSubnet: "10.244.0.0/16", CNI: desired.CNI{Name: p.Name(), Supported: Names()}},
	}
	var a desired.Artifacts
	for _, i := range p.Images() {
		a.Images = append(a.Images, desired.Image{Name: i.Registry + "/" + i.Repository + ":" + i.Tag})
	}
	if publisher, ok := p.(network.Publisher); ok {
		m := publisher.Manifest()
		content, err := os.ReadFile("../" + p.Name() + "/testdata/" + p.Name() + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		a.Published = append(a.Published, desired.PublishedManifest{Name: m.Name, Version: m.Version, Content: content})
	}
	c.Artifacts = map[string]desired.Artifacts{"amd64": a}
	return c
}

// checkRelease checks what the other stages expect of a plugin that is a Helm release.
func checkRelease(t *testing.T, p network.Charted, c desired.Cluster) {
	t.Helper()
	if _, err := p.Values(c); err != nil {
		t.Errorf("%s: %v", p.Name(), err)
	}
	archive := p.Chart()
	if !strings.HasSuffix(archive.Path, ".tgz") || !slices.Equal(Published(p.Name(), ""), []network.Manifest{archive}) {
		t.Errorf("%s: chart %+v, published %v", p.Name(), archive, Published(p.Name(), ""))
	}
	for _, w := range p.Workloads() {
		if w.Namespace != desired.NetworkNamespace {
			t.Errorf("%s waits for %s, which is in another namespace than its release", p.Name(), w)
		}
	}
}

// What the other stages expect of each plugin.
func TestEveryPluginIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range All() {
		c := cluster(t, p)
		if !slices.Contains(v1beta2.CNINames(), p.Name()) || !c.Network.CNI.CarriedOut() {
			t.Errorf("CNI in api/kubeone/v1beta2/network.go has no field %s that is carried out", p.Name())
		}
		if seen[p.Name()] {
			t.Errorf("%s is in the table twice", p.Name())
		}
		seen[p.Name()] = true
		objects, err := p.Objects(c)
		if err != nil {
			t.Fatal(err)
		}
		if charted, ok := p.(network.Charted); ok {
			checkRelease(t, charted, c)
			if len(objects) > 0 {
				t.Errorf("%s has objects besides its release", p.Name())
			}
			continue
		}
		names := map[string]bool{}
		for _, o := range objects {
			meta, _ := o["metadata"].(map[string]any)
			namespace, _ := meta["namespace"].(string)
			names[namespace+"/"+o["kind"].(string)+"/"+meta["name"].(string)] = true
		}
		for _, w := range p.Workloads() {
			if !names[w.String()] {
				t.Errorf("%s waits for %s, which is not among its objects", p.Name(), w)
			}
		}
		for _, o := range objects {
			app, _, _ := unstructured.NestedString(o, "spec", "template", "metadata", "labels", "k8s-app")
			if o["kind"] == "DaemonSet" && app != p.Name() {
				t.Errorf("%s: pods have the label k8s-app=%q, not the one that status expects", p.Name(), app)
			}
		}
		for _, b := range p.Binaries() {
			if !strings.HasPrefix(b.Name, "cni-plugin-") || b.Program == "" || b.Files == "" ||
				strings.HasPrefix(b.Version, "v") || b.AssetFor("x") == b.AssetFor("y") {
				t.Errorf("%s: binary %+v", p.Name(), b)
			}
		}
		if config := p.Config(c); (config.File == "") != (config.Ready == "") || strings.Contains(config.File, "/") {
			t.Errorf("%s: configuration %+v", p.Name(), config)
		}
	}
}

func TestAHostHasTheTracesOfAllPlugins(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		host := Host(cluster(t, p))
		if !cmp.Equal(host.Config, p.Config(cluster(t, p))) || !slices.Equal(host.Binaries, p.Binaries()) {
			t.Errorf("%s: %+v", p.Name(), host)
		}
		for _, other := range All() {
			for _, prefix := range other.Traces().Interfaces {
				if !slices.Contains(host.Traces.Interfaces, prefix) {
					t.Errorf("a host with %s is not rid of %s", p.Name(), prefix)
				}
			}
		}
	}
	if host := Host(desired.Cluster{}); host.Config.File != "" || len(host.Binaries) > 0 ||
		len(host.Traces.Interfaces) == 0 {
		t.Errorf("without a plugin: %+v", host)
	}
}

func TestVersionsOfPlugins(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		same, ok := Find(p.Name(), p.Version())
		if !ok || same.Version() != p.Version() {
			t.Errorf("the default version of %s, %q, is not found", p.Name(), p.Version())
		}
		if images := p.Images(); (p.Version() == "") != (len(images) == 0) ||
			len(images) > 0 && images[0].Tag != "v"+p.Version() {
			t.Errorf("%s %q has the images %+v", p.Name(), p.Version(), images)
		}
		if _, ok := Find(p.Name(), "0.0.1"); ok {
			t.Errorf("%s is found in a version that does not exist", p.Name())
		}
	}
	if p, ok := Find("cilium", "1.20.1"); !ok || p.Version() != "1.20.1" ||
		Published("cilium", "1.20.1")[0].Version != "1.20.1" {
		t.Errorf("cilium 1.20.1 is found as %+v", p)
	}
}

func TestUnknownPluginsAreNotFound(t *testing.T) {
	t.Parallel()
	for _, name := range append(v1beta2.CNINames(), "", "Flannel", "none") {
		if _, ok := Find(name, ""); ok != slices.Contains(Names(), name) {
			t.Errorf("%q is found: %t", name, ok)
		}
	}
}
