// Package cloud is the table of clouds: the charts of their controller managers and storage drivers, the values of
// these charts, and the Secrets that they read. Everything is a pure function of the manifest and the credentials.
package cloud

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Namespace is the namespace of all objects and releases.
const Namespace = "kube-system"

// CredentialsSecret is the name of the Secret with the credentials, by the names of their variables.
const CredentialsSecret = "kubeone-ccm-credentials" // #nosec G101 -- a name

// configSecret is the name of the Secret or ConfigMap with the cloud's configuration file, and configFile is the key in
// the Secret.
const (
	configSecret = "cloud-config"
	configFile   = "cloud.conf"
)

// Variable is a credential: an environment variable, or a key of a credentials file.
type Variable struct {
	Name string
	// Optional says that the controller manager can do without it.
	Optional bool
}

// Input is what values and objects are made from.
type Input struct {
	ClusterName       string
	KubernetesVersion string
	PodSubnet         string
	Registry          desired.Registry
	// Network is the private network of the hosts; Hetzner only.
	Network string
	// Config is the configuration file of the cloud. It may contain secrets.
	Config string
	// StorageConfig is the configuration file of the storage driver. It may contain secrets.
	StorageConfig string
	// Credentials holds the credentials by variable. It lacks those that are not set.
	Credentials map[string]string
	// NoStorage leaves out the storage driver.
	NoStorage bool
}

// Release is a Helm release of a cloud, in Namespace. Its name is that of the chart.
type Release struct {
	Chart  chart.Source
	Values map[string]any
	// Manager says that this is the controller manager. Nodes accept ordinary pods only once it runs.
	Manager bool
}

// Provider is one row of the table.
type Provider struct {
	Name string
	// Variables are the credentials that become a Secret. AllOrNone says that one of them is of no use without the others.
	Variables []Variable
	AllOrNone bool
	// NeedsConfig says that the cloud needs a configuration file.
	NeedsConfig bool
	// HasStorageConfig says that the storage driver has a configuration file of its own.
	HasStorageConfig bool
	// CheckConfig returns why a configuration file is refused, or ""; nil accepts all.
	CheckConfig func(text string) string
	manager     func(Input) Release
	storage     func(Input) Release
	objects     func(Input) []resources.Object
}

// All returns the clouds whose projects publish a chart.
func All() []Provider {
	return []Provider{newAWS(), newAzure(), newHetzner(), newNutanix(), newOpenstack(), newVsphere()}
}

// Find returns a cloud, and whether there is a chart for it.
func Find(name string) (Provider, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return all[i], true
}

// Releases returns the Helm releases, in the order in which they are applied.
func (p Provider) Releases(in Input) []Release {
	manager := p.manager(in)
	manager.Manager = true
	out := []Release{manager}
	if p.storage != nil && !in.NoStorage {
		out = append(out, p.storage(in))
	}
	return out
}

// Objects returns the Secrets and ConfigMaps that the releases read. They contain secrets.
func (p Provider) Objects(in Input) []resources.Object {
	var out []resources.Object
	if p.objects != nil {
		out = p.objects(in)
	}
	for _, o := range out {
		o["metadata"].(map[string]any)["labels"] = map[string]any{resources.AddonLabel: desired.CloudAddon}
	}
	return out
}

// repository returns a chart of a repository, in a range of versions.
func repository(url, name, versions string) chart.Source {
	return chart.Source{RepoURL: url, Name: name, Version: versions}
}

// followMinor returns the range of chart versions for a Kubernetes version, for projects whose minor versions are those
// of Kubernetes. Charts of the minor before also count, because some projects skip one or publish it later. A
// controller manager must not be newer than the API server, and may be one minor older.
//
// Source: https://kubernetes.io/releases/version-skew-policy/
func followMinor(major uint, kubernetes string) string {
	minor := minorOf(kubernetes)
	return fmt.Sprintf(">=%d.%d.0 <%d.%d.0", major, minor-1, major, minor+1)
}

// minorOf returns the minor of a valid Kubernetes version.
func minorOf(kubernetes string) uint { return version.MustParseGeneric(kubernetes).Minor() }

// imageOf returns an image without a tag, in the manifest's registry if there is one.
func imageOf(r desired.Registry, registry, path string) string {
	if r.Overwrite != "" {
		registry = r.Overwrite
	}
	return registry + "/" + path
}

// secretOf returns a Secret. The API server would turn stringData into data, and live objects would differ.
func secretOf(name string, values map[string]string) resources.Object {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return resources.Object{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
		"metadata": map[string]any{"name": name, "namespace": Namespace},
	}
}

// credentialsOf returns the Secret with all credentials, or nothing if there are none.
func credentialsOf(in Input) []resources.Object {
	if len(in.Credentials) == 0 {
		return nil
	}
	return []resources.Object{secretOf(CredentialsSecret, maps.Clone(in.Credentials))}
}

// keyOf returns the source of an environment variable: a key of the Secret with the credentials.
func keyOf(name string) map[string]any {
	return map[string]any{"secretKeyRef": map[string]any{"name": CredentialsSecret, "key": name}}
}

// tolerations returns those of a controller manager that runs on control-plane hosts before it has seen them.
func tolerations() []any {
	return []any{
		map[string]any{
			"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule",
		},
		map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
	}
}
