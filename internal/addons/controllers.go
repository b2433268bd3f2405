package addons

import (
	_ "embed" // the objects

	"kubeone/internal/desired"
	"kubeone/internal/resources"
)

// Controllers is the name of the addon that is the controllers of Machines.
const Controllers = "controllers"

// BundleDir is where control-plane hosts have the bundles from which the controllers install, as files *.tar. Everyone
// may read them: the controllers are not root.
const BundleDir = "/var/lib/kubeone/bundles"

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

// controllers renders controllers.yaml.
func controllers(c desired.Controllers, proxy desired.Proxy) (Addon, error) {
	values := controllersValues{
		Image: c.Image.Name, Arch: c.Arch, BundleDir: BundleDir, HealthPort: healthPort, MetricsPort: metricsPort,
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
	runs := []resources.Workload{{Kind: "DaemonSet", Namespace: "kubeone-system", Name: "kubeone-controller"}}
	return newAddon(Controllers, runs, objects)
}
