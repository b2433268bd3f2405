package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/release"
)

// bundledCharts has the archive of a chart in one version, like a bundle.
type bundledCharts struct {
	shelf
	version string
	archive []byte
}

func (b *bundledCharts) Chart(_ context.Context, from chart.Source) ([]byte, error) {
	if from.Version == "~1.0" || from.Version == b.version {
		return b.archive, nil
	}
	return nil, &release.MissingChartError{Chart: from.String(), Bundled: []string{b.version}}
}

// engineWithRelease returns an engine with a Helm release, and a plan that applies it.
func engineWithRelease(t *testing.T, version, template string) (*Engine, Proposal) {
	t.Helper()
	archive, err := chart.Pack("web", fstest.MapFS{
		"Chart.yaml":             {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.2\n")},
		"templates/objects.yaml": {Data: []byte(template)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := addons.HelmRelease{Name: "web", Namespace: "web", Chart: chart.Source{
		RepoURL: "https://charts.example.com", Name: "web", Version: version,
	}}
	e := &Engine{cfg: Config{
		Want: wanted("demo"), Releases: &bundledCharts{version: "1.0.2", archive: archive},
		Addons: &addons.Sources{Releases: []addons.HelmRelease{want}},
	}}
	p := Proposal{Request: Apply{}, Plan: plan.Plan{Steps: []plan.Step{{
		Intent: step.With(step.ApplyReleaseParams{Namespace: "web", Name: "web"}),
	}}}}
	p.Observed.World.API.HelmReleases = map[string]observed.HelmRelease{
		"web/web": {Managed: true, Source: want.Chart.Digest(), Version: "1.0.1"},
	}
	return e, p
}

func TestAChartThatNoBundleHasMakesThePlanUnresolved(t *testing.T) {
	t.Parallel()
	e, p := engineWithRelease(t, "2.0.0", "")
	found, missing, err := e.resolveCharts(t.Context(), p)
	if err != nil || len(found) > 0 || missing == nil || !strings.HasPrefix(missing.Error(),
		"Helm release web/web: no bundle contains chart web 2.0.0 from https://charts.example.com (only 1.0.2); create ") {
		t.Errorf("%v, %v, %v", found, missing, err)
	}
}

// A release keeps its version only if a bundle has it.
func TestAReleaseGetsTheVersionInTheBundle(t *testing.T) {
	t.Parallel()
	e, p := engineWithRelease(t, "~1.0", "")
	found, missing, err := e.resolveCharts(t.Context(), p)
	if err != nil || missing != nil || found["web/web"].Version != "1.0.2" {
		t.Errorf("%v, %v, %v", found, missing, err)
	}
}

// A chart is checked for what the cluster serves; without an API, for what Helm knows.
func TestAChartIsCheckedForTheServedAPIVersions(t *testing.T) {
	t.Parallel()
	template := `{{ if not (.Capabilities.APIVersions.Has "x.example/v1") }}{{ fail "install x.example first" }}{{ end }}`
	for name, c := range map[string]struct {
		served []string
		why    string
	}{
		"served": {served: []string{"v1", "x.example/v1"}}, "not served": {[]string{"v1"}, "install x.example first"},
		"no API": {nil, "install x.example first"},
	} {
		e, p := engineWithRelease(t, "~1.0", template)
		p.Observed.World.API.APIVersions = c.served
		_, missing, err := e.resolveCharts(t.Context(), p)
		var mistake *ConfigError
		if missing != nil || c.why == "" && err != nil ||
			c.why != "" && (!errors.As(err, &mistake) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, %v", name, missing, err)
		}
	}
}
