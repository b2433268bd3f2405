// Package addons renders the objects that a cluster needs in addition to those of kubeadm: the network plugin, a
// disruption budget for cluster DNS, and the Machine controllers. Rendering is pure, so a plan can compare the digest
// of an addon with the digest that was last applied.
package addons

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Addon is the objects of one addon and the workloads to wait for.
type Addon struct {
	Name string
	// Digest is the sha256 (hex) of the objects in order, each as JSON with sorted keys.
	Digest  string
	Objects []unstructured.Unstructured
	Wait    []resources.Workload
}

// Render returns the addons of the cluster in the order in which they are applied: the network plugin, the cluster DNS
// budget, and the controllers. A network plugin that another tool deploys is not an addon.
func Render(want desired.Cluster) ([]Addon, error) {
	var out []Addon
	if plugin, ok := plugins.Find(want.Network.CNI.Name); ok {
		addon, err := newPluginAddon(plugin, want)
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", plugin.Name(), err)
		}
		if len(addon.Objects) > 0 {
			out = append(out, addon)
		}
	}
	if budget := want.Network.DNS.Budget; budget != nil && *budget {
		addon, err := newDNSBudgetAddon()
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", desired.DNSBudgetAddon, err)
		}
		out = append(out, addon)
	}
	if want.Controllers != nil {
		addon, err := newControllersAddon(want)
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", desired.ControllersAddon, err)
		}
		out = append(out, addon)
	}
	return out, nil
}

// newPluginAddon renders the addon of a network plugin. The addon is empty if another tool deploys the plugin.
func newPluginAddon(plugin network.Plugin, want desired.Cluster) (Addon, error) {
	objects, err := plugin.Objects(want)
	if err != nil || len(objects) == 0 {
		return Addon{}, err
	}
	if want.LimitsNodes() {
		exemptFromNodeSelector(objects)
	}
	return newAddon(plugin.Name(), plugin.Workloads(), objects)
}

// exemptFromNodeSelector adds an annotation to the Namespaces among the objects, so that their pods can run on any Node
// regardless of the default node selector.
func exemptFromNodeSelector(objects []resources.Object) {
	for _, o := range objects {
		metadata, ok := o["metadata"].(map[string]any)
		if o["kind"] == "Namespace" && ok {
			metadata["annotations"] = map[string]any{desired.NodeSelectorAnnotation: ""}
		}
	}
}

// newAddon converts rendered objects to API objects and computes their digest.
func newAddon(name string, wait []resources.Workload, objects []resources.Object) (Addon, error) {
	text, err := json.Marshal(objects)
	if err != nil {
		return Addon{}, err
	}
	var contents []map[string]any
	if err := json.Unmarshal(text, &contents); err != nil {
		return Addon{}, err
	}
	addon := Addon{Name: name, Wait: wait}
	sum := sha256.New()
	for _, content := range contents {
		canonical, err := json.Marshal(content)
		if err != nil {
			return Addon{}, err
		}
		sum.Write(canonical)
		sum.Write([]byte("\n"))
		o := unstructured.Unstructured{}
		if err := o.UnmarshalJSON(canonical); err != nil { // whole numbers become int64, as in the API machinery
			return Addon{}, err
		}
		addon.Objects = append(addon.Objects, o)
	}
	addon.Digest = hex.EncodeToString(sum.Sum(nil))
	return addon, nil
}
