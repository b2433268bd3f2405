package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/helm"
	"kubeone/internal/cluster/live"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/release"
	"kubeone/internal/text/diff"
)

// resolveCharts fetches the charts that the plan installs and checks that they can be rendered. The error is a
// *ConfigError. Charts that cannot be fetched are left out, and missing says why.
func (e *Engine) resolveCharts(ctx context.Context, p Proposal) (known map[string]chart.Chart, missing, err error) {
	known = map[string]chart.Chart{}
	var failures []error
	var notBundled *release.MissingChartError
	for _, s := range p.Plan.Steps {
		if s.Intent.Kind != step.ApplyRelease {
			continue
		}
		params := step.ParamsOf[step.ApplyReleaseParams](s.Intent)
		want, found := e.helmRelease(params.Namespace + "/" + params.Name)
		switch {
		case !found:
			return nil, nil, fmt.Errorf("unknown Helm release %s/%s", params.Namespace, params.Name)
		case resolvesNames(p.Request):
			failures = append(failures, errNamesOnly)
			continue
		}
		c, err := e.resolveChart(ctx, want, p.Observed.World.API)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err == nil:
			known[want.Key()] = c
		case errors.As(err, &notBundled):
			failures = append(failures, &HelmReleaseError{want.Key(), notBundled})
		case isFetchFailure(err):
			failures = append(failures, &HelmReleaseError{want.Key(), fmt.Errorf("cannot fetch %w", err)})
		default:
			return nil, nil, &ConfigError{&HelmReleaseError{want.Key(), err}}
		}
	}
	return known, errors.Join(failures...), nil
}

// A HelmReleaseError is a mistake in the chart or the values of a Helm release, or a chart that is not available.
type HelmReleaseError struct {
	Key string // "namespace/name"
	Err error
}

func (e *HelmReleaseError) Error() string { return "Helm release " + e.Key + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *HelmReleaseError) Unwrap() error { return e.Err }

// isFetchFailure reports whether a chart may be there later: its source does not answer, or refuses.
func isFetchFailure(err error) bool {
	var chartError *release.ChartError
	return errors.As(err, &chartError) && !errors.Is(err, release.ErrNoChart)
}

// resolvesNames reports whether the request needs names of artifacts only.
func resolvesNames(r Request) bool {
	apply, ok := r.(Apply)
	return ok && apply.NamesOnly
}

// resolveChart fetches and checks the chart of a release. While the manifest does not change the source of the chart,
// an installed release keeps its version, unless bundles have only others.
func (e *Engine) resolveChart(ctx context.Context, want addons.HelmRelease, api observed.API) (chart.Chart, error) {
	from, is := want.Chart, api.HelmReleases[want.Key()]
	if is.Managed && is.Source == from.Digest() && from.Archive == nil {
		from.Version = is.Version
	}
	archive, err := e.cfg.Releases.Chart(ctx, from)
	var missing *release.MissingChartError
	if errors.As(err, &missing) && from.Version != want.Chart.Version {
		archive, err = e.cfg.Releases.Chart(ctx, want.Chart)
	}
	if err != nil {
		return chart.Chart{}, err
	}
	c, err := chart.Load(archive)
	if err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, chart.RenderTimeout)
	defer cancel()
	_, err = c.Render(ctx, want.RenderInput(e.cfg.Want.KubernetesVersion, api.APIVersions))
	return c, err
}

// releaseDiff returns the changes in the objects of a Helm release. The chart sees the cluster while it renders.
func (e *Engine) releaseDiff(ctx context.Context, client *cluster.Client, p Proposal, key string) []diff.Change {
	want, _ := e.helmRelease(key)
	c, known := p.charts[key]
	if !known {
		return []diff.Change{diff.Summary("Helm release "+key, "its chart could not be fetched")}
	}
	in := want.RenderInput(e.cfg.Want.KubernetesVersion, p.Observed.World.API.APIVersions)
	in.Lookup = func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		return client.Lookup(ctx, apiVersion, kind, namespace, name)
	}
	rendered, err := c.Render(ctx, in)
	if err != nil {
		return []diff.Change{diff.Summary("Helm release "+key, err.Error())}
	}
	objects, err := helm.Mark(want.Namespace, want.Name, rendered)
	if err != nil {
		return []diff.Change{diff.Summary("Helm release "+key, err.Error())}
	}
	return live.PreviewApply(ctx, client.As(helm.FieldManager, want.Namespace), live.Component{Name: key,
		Applied: objects})
}

// helmRelease returns a desired Helm release, with its values.
func (e *Engine) helmRelease(key string) (addons.HelmRelease, bool) {
	for _, r := range e.releases() {
		if r.Key() == key {
			return r, true
		}
	}
	return addons.HelmRelease{}, false
}

// releases returns the desired Helm releases, in the order in which they are applied: first the network plugin, if it
// is one, then those of the manifest.
func (e *Engine) releases() []addons.HelmRelease {
	if e.cfg.Addons == nil {
		return e.network
	}
	return slices.Concat(e.network, e.cfg.Addons.Releases)
}

// releaseKeys returns the keys of the desired Helm releases, or nil if none is known.
func (e *Engine) releaseKeys() []string {
	if e.cfg.Addons == nil && e.network == nil {
		return nil
	}
	out := []string{}
	for _, r := range e.releases() {
		out = append(out, r.Key())
	}
	return out
}

// chartsOf returns what a plan says about charts.
func chartsOf(known map[string]chart.Chart) map[string]plan.Chart {
	out := map[string]plan.Chart{}
	for key, c := range known {
		out[key] = plan.Chart{Version: c.Version, Digest: c.Digest}
	}
	return out
}

// helmReleases returns the Helm releases that a run can apply.
func (e *Engine) helmReleases(known map[string]chart.Chart) apply.HelmReleases {
	out := apply.HelmReleases{}
	for key, c := range maps.All(known) {
		want, _ := e.helmRelease(key)
		out[key] = helm.Release{
			Name: want.Name, Namespace: want.Namespace, Chart: c.Archive(), Values: want.Values,
			Source: want.Chart.Digest(), Wait: want.Wait, Timeout: want.Timeout,
		}
	}
	return out
}
