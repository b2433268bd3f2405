package addons

import (
	_ "embed" // the objects
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
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

// Removable returns the objects to delete when the addon is removed. Their kinds, namespaces and names do not depend on
// the cluster. Namespaces are left out, because they may contain other objects. It fails if the addon cannot be
// removed.
func Removable(name string) ([]unstructured.Unstructured, error) {
	var addon Addon
	var err error
	switch name {
	case desired.ControllersAddon:
		addon, err = newControllersAddon(desired.Cluster{Controllers: &desired.Controllers{}})
	case desired.DNSBudgetAddon:
		addon, err = newDNSBudgetAddon()
	default:
		return nil, fmt.Errorf("addon %s cannot be removed", name)
	}
	if err != nil {
		return nil, err
	}
	shared := func(o unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }
	return slices.DeleteFunc(addon.Objects, shared), nil
}
