package components

import (
	"fmt"
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
}

// imageParts are what images are made of: tools to change packet filters, a shell, and programs of the set by path.
type imageParts struct {
	netfilter, shell layerSpec
	program          func(paths ...string) layerSpec
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
		{name: "external"},
	}
}

// CheckCNI returns an error unless the lab can build the network plugin.
func CheckCNI(name string) error {
	_, err := findNetworkPlugin(name)
	return err
}

func findNetworkPlugin(name string) (networkPlugin, error) {
	var names []string
	for _, p := range networkPlugins() {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
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
