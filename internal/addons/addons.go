// Package addons renders the objects that a cluster needs in addition to those of kubeadm: the network plugin, a
// disruption budget for cluster DNS, and the Machine controllers. Rendering is pure, so a plan can compare the digest
// of an addon with the digest that was last applied.
package addons

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/embedded"
	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Addon is the objects of one addon and the workloads to wait for.
type Addon struct {
	Name string
	// Digest is the sha256 (hex) of the objects in order, each as JSON with sorted keys. For the objects of a published
	// manifest, it is the sha256 of the manifest's version and of what is set in it, so it needs no content.
	Digest  string
	Objects []unstructured.Unstructured
	// Manifest is the sha256 (hex) of the published manifest with the objects; "" if there is none.
	Manifest string
	// Problem is the reason why the objects are unknown: the published manifest is not available.
	Problem string
	Wait    []resources.Workload
	// Custom says that the addon is the operator's own.
	Custom bool
}

// Identities returns the identities of the objects.
func (a Addon) Identities() []observed.AddonObject {
	out := make([]observed.AddonObject, len(a.Objects))
	for i := range a.Objects {
		out[i] = resources.Identify(&a.Objects[i])
	}
	return out
}

// Sources are the operator's own addons.
type Sources struct {
	// Custom holds the addons to apply, in this order.
	Custom []CustomAddon
	// Delete lists the addons that the manifest asks to delete.
	Delete []string
	// Releases holds the desired Helm releases, in this order.
	Releases []HelmRelease
	// Declared says that the manifest has the field addons, even if it is empty.
	Declared bool
}

// CustomAddon is the rendered objects of one of the operator's own addons.
type CustomAddon struct {
	Name    string
	Objects []resources.Object
}

// Custom returns the operator's own addons. It fails if two addons, of the operator or of kubeone, contain the same
// object, or if one has the name of an addon of kubeone.
func Custom(want desired.Cluster, own []Addon, from Sources) ([]Addon, error) {
	owners := map[string]string{}
	for _, a := range own {
		for i := range a.Objects {
			owners[resources.Identify(&a.Objects[i]).Key()] = a.Name
		}
	}
	var out []Addon
	for _, f := range from.Custom {
		if want.IsOwnAddon(f.Name) {
			return nil, fmt.Errorf("%s is the name of an addon of kubeone; rename the folder", f.Name)
		}
		addon, err := newAddon(f.Name, workloadsOf(f.Objects), f.Objects)
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", f.Name, err)
		}
		addon.Custom = true
		for i := range addon.Objects {
			id := resources.Identify(&addon.Objects[i])
			if other, found := owners[id.Key()]; found {
				return nil, fmt.Errorf("addon %s: the %s is also in addon %s", f.Name, id, other)
			}
			owners[id.Key()] = f.Name
		}
		out = append(out, addon)
	}
	return out, nil
}

// workloadsOf returns the workloads to wait for among the objects.
func workloadsOf(objects []resources.Object) []resources.Workload {
	var out []resources.Workload
	for _, o := range objects {
		u := unstructured.Unstructured{Object: o}
		if group, _, _ := strings.Cut(u.GetAPIVersion(), "/"); group != "apps" {
			continue
		}
		switch u.GetKind() {
		case "Deployment", "DaemonSet", "StatefulSet":
			out = append(out, resources.Workload{
				Kind: u.GetKind(), Namespace: cmp.Or(u.GetNamespace(), "default"), Name: u.GetName(),
			})
		}
	}
	return out
}

// newEmbeddedAddon renders an addon of package embedded.
func newEmbeddedAddon(name string, want desired.Cluster) (Addon, error) {
	rendered, err := embedded.Render(name, want)
	if err != nil {
		return Addon{}, err
	}
	return newAddon(name, rendered.Workloads, rendered.Objects)
}

// Render returns the addons of the cluster in the order in which they are applied: the network plugin, the cluster DNS
// budget, default addons, and the controllers. It includes default addons that the manifest does not mention. A network
// plugin that another tool deploys is not an addon.
func Render(want desired.Cluster) ([]Addon, error) {
	type part struct {
		name   string
		render func() (Addon, error)
	}
	parts := []part{{want.Network.CNI.Name, func() (Addon, error) { return newPluginAddon(want) }}}
	if budget := want.Network.DNS.Budget; budget != nil && *budget {
		parts = append(parts, part{desired.DNSBudgetAddon, newDNSBudgetAddon})
	}
	for _, name := range desired.DefaultAddons() {
		if wanted := want.DefaultAddon(name); want.IsOwnAddon(name) && (wanted == nil || *wanted) {
			parts = append(parts, part{name, func() (Addon, error) { return newEmbeddedAddon(name, want) }})
		}
	}
	if want.Controllers != nil {
		parts = append(parts, part{desired.ControllersAddon, func() (Addon, error) { return newControllersAddon(want) }})
	}
	var out []Addon
	for _, p := range parts {
		addon, err := p.render()
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", p.name, err)
		}
		if addon.Name != "" {
			out = append(out, addon)
		}
	}
	return out, nil
}

// newPluginAddon renders the addon of the network plugin. The addon is empty if another tool deploys the plugin.
func newPluginAddon(want desired.Cluster) (Addon, error) {
	plugin, found := plugins.Find(want.Network.CNI.Name, want.Network.CNI.Version)
	if !found {
		return Addon{}, nil
	}
	objects, err := plugin.Objects(want)
	publisher, published := plugin.(network.Publisher)
	var missing *network.MissingManifestError
	if published && errors.As(err, &missing) {
		addon := Addon{Name: plugin.Name(), Wait: plugin.Workloads(), Problem: missing.Error()}
		addon.Digest, err = publishedDigest(publisher, want)
		return addon, err
	}
	if err != nil || len(objects) == 0 {
		return Addon{}, err
	}
	if want.LimitsNodes() {
		exemptFromNodeSelector(objects)
	}
	addon, err := newAddon(plugin.Name(), plugin.Workloads(), objects)
	if err != nil || !published {
		return addon, err
	}
	manifest, err := network.PublishedManifest(want.Artifacts, publisher.Manifest())
	if err != nil {
		return Addon{}, err
	}
	addon.Manifest = manifest.SHA256
	addon.Digest, err = publishedDigest(publisher, want)
	return addon, err
}

// publishedDigest returns the digest of an addon from a published manifest.
func publishedDigest(plugin network.Publisher, want desired.Cluster) (string, error) {
	settings, err := plugin.Settings(want)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(struct {
		Name, Version string
		Settings      any
		LimitsNodes   bool
	}{plugin.Manifest().Name, plugin.Manifest().Version, settings, want.LimitsNodes()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
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
