package components

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultCNI is the network plugin of labs that choose none.
const DefaultCNI = "flannel"

// networkPlugin is how a network plugin of kubeone is built.
type networkPlugin struct {
	name string
	// recipes are its programs, and cni those that are CNI plugins.
	recipes, cni []Recipe
	images       func(imageParts) []imageSpec
	// manifests are stand-ins for manifests that a project publishes.
	manifests []standIn
	// layer is what the images need besides programs; nil for nothing.
	layer func(context.Context, *Builder) (layerSpec, error)
	// files are other files that its project publishes, and urls their URLs without the scheme.
	files func(context.Context, *Builder) ([]File, error)
	urls  []string
	// settings are those in the manifest of a lab, in YAML; "" for none.
	settings string
}

// standIn is a file of a package of kubeone that is served at a URL without the scheme.
type standIn struct{ URL, Package, Path string }

// calicoVersion is the version of canal's images and manifest.
const calicoVersion = "v3.32.0"

// imageParts are what images are made of: tools to change packet filters, a shell, programs of the set by path, and CNI
// plugins by name.
type imageParts struct {
	netfilter, shell layerSpec
	program, plugin  func(names ...string) layerSpec
	own              layerSpec // networkPlugin.layer
}

// networkPlugins returns the table of plugins that can be built.
func networkPlugins() []networkPlugin {
	return []networkPlugin{
		{
			name: DefaultCNI, recipes: []Recipe{flannelRecipe()}, cni: []Recipe{flannelCNIRecipe()},
			images: func(parts imageParts) []imageSpec {
				return []imageSpec{{
					Name: "flannel-io/flannel", Tag: FlannelVersion,
					Layers:     []layerSpec{mergeLayers(parts.netfilter, parts.shell), parts.program("opt/bin/flanneld")},
					Entrypoint: []string{"/opt/bin/flanneld"},
				}}
			},
		},
		{
			// flannel of the lab's version is real. The images of Calico have a shell only.
			name: "canal", recipes: []Recipe{flannelRecipe()}, cni: []Recipe{flannelCNIRecipe()},
			images: func(parts imageParts) []imageSpec {
				return []imageSpec{
					{Name: "calico/cni", Tag: calicoVersion, Layers: []layerSpec{parts.shell, parts.plugin("flannel")}},
					{Name: "calico/node", Tag: calicoVersion, Layers: []layerSpec{parts.shell}},
					{Name: "calico/kube-controllers", Tag: calicoVersion, Layers: []layerSpec{parts.shell},
						Entrypoint: []string{"/bin/sleep", "2147483647"}},
					{Name: "flannel/flannel", Tag: "v0.24.4",
						Layers: []layerSpec{mergeLayers(parts.netfilter, parts.shell), parts.program("opt/bin/flanneld")}},
				}
			},
			manifests: []standIn{{
				URL:     "raw.githubusercontent.com/projectcalico/calico/" + calicoVersion + "/manifests/canal.yaml",
				Package: "kubeone/internal/addons/network/canal", Path: "testdata/canal.yaml",
			}},
		},
		ciliumPlugin(""),
		{name: "external"},
	}
}

// addManifests adds the stand-ins to a set. Their digests are part of the set's digest.
func (b *Builder) addManifests(ctx context.Context, set *Set, plugin networkPlugin) error {
	for _, m := range plugin.manifests {
		dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", m.Package).Output()
		if err != nil {
			return fmt.Errorf("package %s: %w", m.Package, err)
		}
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), m.Path))
		if err != nil {
			return err
		}
		name := filepath.Base(m.Path)
		kept, err := b.Cache.Entry(ctx, "archives", digestOf("manifest v1", string(content)), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, name), content, 0o644)
		})
		if err != nil {
			return err
		}
		set.Files = append(set.Files, File{m.URL, filepath.Join(kept, name)})
	}
	return nil
}

// CNISettings returns a network plugin and its settings in the manifest of a lab, in YAML.
func CNISettings(cni string) string {
	name, settings := cni, "{}"
	if p, err := findNetworkPlugin(cni); err == nil {
		name, settings = p.name, cmp.Or(p.settings, settings)
	}
	return name + ": " + settings
}

// CheckCNI returns an error unless the lab can build the network plugin.
func CheckCNI(cni string) error {
	_, err := findNetworkPlugin(cni)
	return err
}

// findNetworkPlugin returns a plugin by its name, or by NAME@VERSION if the lab builds more than one version.
func findNetworkPlugin(cni string) (networkPlugin, error) {
	name, version, versioned := strings.Cut(cni, "@")
	var names []string
	for _, p := range networkPlugins() {
		switch {
		case p.name != name:
			names = append(names, p.name)
		case !versioned:
			return p, nil
		case name == "cilium" && strings.Count(version, ".") == 2:
			return ciliumPlugin(version), nil
		default:
			return p, fmt.Errorf("network plugin %q: want the plugin alone, or as in cilium@%s", cni, CiliumVersion[1:])
		}
	}
	return networkPlugin{}, fmt.Errorf("network plugin %q: the lab builds %s", name, strings.Join(names, ", "))
}

// downloadsOf returns the files of the recipes.
func downloadsOf(recipes []Recipe) []Download {
	var out []Download
	for _, r := range recipes {
		out = slices.Concat(out, r.Downloads)
	}
	return out
}
