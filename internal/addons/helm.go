package addons

import (
	"time"

	"kubeone/internal/addons/chart"
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
}

// Key returns "namespace/name".
func (r HelmRelease) Key() string { return r.Namespace + "/" + r.Name }

// Summary returns the release without its values.
func (r HelmRelease) Summary() desired.HelmRelease {
	return desired.HelmRelease{
		Namespace: r.Namespace, Name: r.Name, Chart: r.Chart.String(), Source: r.Chart.Digest(),
		Values: chart.ValuesDigest(r.Values), TimeoutSeconds: int(r.Timeout.Seconds()),
	}
}

// RenderInput returns what the chart is rendered for.
func (r HelmRelease) RenderInput(kubernetesVersion string) chart.Release {
	return chart.Release{Name: r.Name, Namespace: r.Namespace, Values: r.Values, KubernetesVersion: kubernetesVersion}
}
