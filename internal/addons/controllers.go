package addons

import (
	_ "embed" // the objects
	"slices"
	"strings"

	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Ports on the loopback address of control-plane hosts, unused by Kubernetes.
const (
	healthPort  = 10268
	metricsPort = 10269
)

//go:embed controllers.yaml
var controllersObjects string

// controllersValues fill controllers.yaml.
type controllersValues struct {
	Image, Arch, BundleDir  string
	HealthPort, MetricsPort int
	Namespaces              []string // with a Role in each
	Environment             []variable
	// Nodes are the Node names of the control-plane hosts. OwnNames means that the name of at least one host is
	// unknown. Then every Node with the control-plane label counts as a control-plane host, unless it belongs to a
	// Machine.
	Nodes      []string
	OwnNames   bool
	OwnerLabel string
}

type variable struct{ Name, Value string }

// newControllersAddon renders controllers.yaml for a cluster with controllers.
func newControllersAddon(want desired.Cluster) (Addon, error) {
	c, proxy := *want.Controllers, want.Proxy
	values := controllersValues{
		Image: c.Image.Name, Arch: c.Arch, BundleDir: desired.BundleDir,
		HealthPort: healthPort, MetricsPort: metricsPort,
		Namespaces: []string{"kubeone-system", "kube-system", "default"},
		OwnNames:   len(want.ControlPlane) == 0, OwnerLabel: desired.OwnerLabel,
	}
	for _, h := range want.ControlPlane {
		if h.Hostname == "" {
			values.OwnNames = true
		} else {
			values.Nodes = append(values.Nodes, strings.ToLower(h.Hostname))
		}
	}
	slices.Sort(values.Nodes)
	for _, v := range []variable{
		{"HTTP_PROXY", proxy.HTTP}, {"HTTPS_PROXY", proxy.HTTPS}, {"NO_PROXY", proxy.NoProxy},
	} {
		if v.Value != "" { // the controllers fetch digests through the proxy, as hosts do
			values.Environment = append(values.Environment, v)
		}
	}
	objects, err := resources.Render(controllersObjects, values)
	if err != nil {
		return Addon{}, err
	}
	if want.LimitsNodes() {
		exemptFromNodeSelector(objects)
	}
	workloads := []resources.Workload{{Kind: "DaemonSet", Namespace: "kubeone-system", Name: "kubeone-controller"}}
	return newAddon(desired.ControllersAddon, workloads, objects)
}

// RemovableNames lists the addons of kubeone that can be removed.
func RemovableNames() []string {
	return append([]string{desired.ControllersAddon, desired.DNSBudgetAddon}, desired.DefaultAddons()...)
}

// Removable returns the objects of an addon in RemovableNames. Their kinds, namespaces and names do not depend on the
// cluster. Clusters that were made before there were inventories need it to remove such an addon.
func Removable(name string) []observed.AddonObject {
	var addon Addon
	switch name {
	case desired.ControllersAddon:
		addon, _ = newControllersAddon(desired.Cluster{Controllers: &desired.Controllers{}}) // a test renders it
	case desired.DNSBudgetAddon:
		addon, _ = newDNSBudgetAddon()
	default:
		addon, _ = newEmbeddedAddon(name, desired.Cluster{ // a test renders them
			Network:   desired.Network{ServiceSubnet: "10.96.0.0/12"},
			Artifacts: map[string]desired.Artifacts{"": {Images: []desired.Image{{Name: "registry.k8s.io/coredns:v1"}}}},
		})
	}
	return addon.Identities()
}
