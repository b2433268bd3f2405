package addons

import (
	"fmt"
	"time"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// HelmRelease is a desired Helm release. Its values may contain secrets.
type HelmRelease struct {
	Name, Namespace string
	Chart           chart.Source
	Values          map[string]any
	// Wait makes Helm wait until the objects are ready, and roll back an upgrade whose objects do not become ready.
	Wait    bool
	Timeout time.Duration
	// Network says that the release is the network plugin. Workloads are those of the plugin to wait for.
	Network   bool
	Workloads []resources.Workload
	// CloudManager says that the release is the cloud's controller manager.
	CloudManager bool
}

// Key returns "namespace/name".
func (r HelmRelease) Key() string { return r.Namespace + "/" + r.Name }

// Summary returns the release without its values.
func (r HelmRelease) Summary() desired.HelmRelease {
	out := desired.HelmRelease{
		Namespace: r.Namespace, Name: r.Name, Chart: r.Chart.String(), Source: r.Chart.Digest(),
		Values: chart.ValuesDigest(r.Values), TimeoutSeconds: int(r.Timeout.Seconds()), Network: r.Network,
		CloudManager: r.CloudManager,
	}
	if r.Network {
		out.Version = r.Chart.Version
	}
	return out
}

// RenderInput returns what the chart is rendered for. Nil apiVersions are those of a cluster that is not known.
func (r HelmRelease) RenderInput(kubernetesVersion string, apiVersions []string) chart.Release {
	return chart.Release{
		Name: r.Name, Namespace: r.Namespace, Values: r.Values, KubernetesVersion: kubernetesVersion,
		APIVersions: apiVersions,
	}
}

// networkTimeout limits the time for Helm to apply a network plugin. kubeone waits for its pods in another step.
const networkTimeout = 5 * time.Minute

// NetworkRelease returns the Helm release of the network plugin, and whether the plugin is one.
func NetworkRelease(want desired.Cluster) (HelmRelease, bool, error) {
	plugin, _ := plugins.Find(want.Network.CNI.Name, want.Network.CNI.Version)
	charted, ok := plugin.(network.Charted)
	if !ok {
		return HelmRelease{}, false, nil
	}
	values, err := charted.Values(want)
	if err != nil {
		return HelmRelease{}, false, fmt.Errorf("network plugin %s: %w", charted.Name(), err)
	}
	archive := charted.Chart()
	return HelmRelease{
		Name: charted.Name(), Namespace: desired.NetworkNamespace, Values: values, Timeout: networkTimeout,
		Network: true, Workloads: charted.Workloads(),
		Chart: chart.Source{URL: archive.URL(), Version: archive.Version},
	}, true, nil
}
