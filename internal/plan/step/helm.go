package step

import (
	"maps"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// Kinds that concern Helm releases.
const (
	ApplyRelease  Kind = "apply-release"
	RemoveRelease Kind = "remove-release"
)

// ApplyReleaseParams name a Helm release. The intent's Digest is that of the chart.
type ApplyReleaseParams struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Version is that of the chart.
	Version string `json:"version,omitempty"`
	// Source and Values are the digests of desired.HelmRelease.
	Source         string `json:"source,omitempty"`
	Values         string `json:"values,omitempty"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty"`
}

// Kind returns ApplyRelease.
func (ApplyReleaseParams) Kind() Kind { return ApplyRelease }

func applyReleaseRow() row {
	return row{
		kind: ApplyRelease, about: "installs or upgrades a Helm release",
		place: ThroughAPI, group: groupAddons, params: paramsOf[ApplyReleaseParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[ApplyReleaseParams](i)
			key := p.Namespace + "/" + p.Name
			w.Is.API.HelmReleases = maps.Clone(w.Is.API.HelmReleases)
			if w.Is.API.HelmReleases == nil {
				w.Is.API.HelmReleases = map[string]observed.HelmRelease{}
			}
			had := w.Is.API.HelmReleases[key]
			w.Is.API.HelmReleases[key] = observed.HelmRelease{
				Revision: had.Revision + 1, Status: observed.ReleaseDeployed, Chart: had.Chart, Version: p.Version,
				Managed: true, Source: p.Source, Values: p.Values,
			}
			w.changeComparison(key, func(c *observed.Comparison) { c.Differences = nil })
		},
	}
}

// RemoveReleaseParams name a Helm release.
type RemoveReleaseParams struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Kind returns RemoveRelease.
func (RemoveReleaseParams) Kind() Kind { return RemoveRelease }

func removeReleaseRow() row {
	return row{
		kind: RemoveRelease, about: "uninstalls a Helm release",
		place: ThroughAPI, group: groupAddons, params: paramsOf[RemoveReleaseParams](),
		effect: func(w *World, _ desired.Host, i Intent) {
			p := ParamsOf[RemoveReleaseParams](i)
			w.Is.API.HelmReleases = maps.Clone(w.Is.API.HelmReleases)
			delete(w.Is.API.HelmReleases, p.Namespace+"/"+p.Name)
		},
	}
}
