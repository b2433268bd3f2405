package addons

import (
	_ "embed" // the objects
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/desired"
	"kubeone/internal/resources"
)

// On the loopback address of control-plane hosts. Nothing of Kubernetes listens there.
const (
	healthPort  = 10268
	metricsPort = 10269
)

//go:embed controllers.yaml
var controllersObjects string

// controllersValues are what controllers.yaml is filled with.
type controllersValues struct {
	Image, Arch, BundleDir  string
	HealthPort, MetricsPort int
	Namespaces              []string // with a Role of theirs
	Environment             []variable
}

type variable struct{ Name, Value string }

// controllers renders controllers.yaml; limitsNodes says that pods get node selectors unless they are exempt.
func controllers(c desired.Controllers, proxy desired.Proxy, limitsNodes bool) (Addon, error) {
	values := controllersValues{
		Image: c.Image.Name, Arch: c.Arch, BundleDir: desired.BundleDir,
		HealthPort: healthPort, MetricsPort: metricsPort,
		Namespaces: []string{"kubeone-system", "kube-system", "default"},
	}
	for _, v := range []variable{
		{"HTTP_PROXY", proxy.HTTP}, {"HTTPS_PROXY", proxy.HTTPS}, {"NO_PROXY", proxy.NoProxy},
	} {
		if v.Value != "" { // as hosts do, they ask for digests through it
			values.Environment = append(values.Environment, v)
		}
	}
	objects, err := resources.Render(controllersObjects, values)
	if err != nil {
		return Addon{}, err
	}
	if limitsNodes {
		exempt(objects)
	}
	runs := []resources.Workload{{Kind: "DaemonSet", Namespace: "kubeone-system", Name: "kubeone-controller"}}
	return newAddon(desired.ControllersAddon, runs, objects)
}

// Removable are the objects of an addon that can be taken away: what kinds, namespaces and names they have does not
// depend on what it was made of. Namespaces are not among them, which others use too.
func Removable(name string) ([]unstructured.Unstructured, error) {
	var addon Addon
	var err error
	switch name {
	case desired.ControllersAddon:
		addon, err = controllers(desired.Controllers{}, desired.Proxy{}, false)
	case desired.DNSBudgetAddon:
		addon, err = dnsBudget()
	default:
		return nil, fmt.Errorf("addon %s cannot be taken away", name)
	}
	if err != nil {
		return nil, err
	}
	shared := func(o unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }
	return slices.DeleteFunc(addon.Objects, shared), nil
}
