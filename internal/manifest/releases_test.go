package manifest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
)

func TestHelmReleasesOfAManifest(t *testing.T) {
	t.Parallel()
	loaded, err := loadAddons(t, `helmReleases:
- chart: web
  repoURL: https://charts.example.com
  version: ~1.2
  namespace: web
  wait: true
  timeout: 90s
  auth: {username: me, password: t0p}
  values:
  - valuesFile: values.yaml
  - inline: {a: {c: 3}, list: [2]}
- chart: app
  repoURL: oci://registry.example.com/charts/
  insecure: true
  namespace: web
- chartURL: https://charts.example.com/tool-1.0.0.tgz
  releaseName: tool
  namespace: tools
- chart: ./charts/own
  namespace: web
`, map[string]string{
		"values.yaml": "a: {b: 1, c: 2}\nlist: [1]\n", "charts/own/Chart.yaml": "apiVersion: v2\n" +
			"name: other\nversion: 1.0.0\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []addons.HelmRelease{
		{
			Name: "web", Namespace: "web", Wait: true, Timeout: 90 * time.Second, Chart: chart.Source{
				RepoURL: "https://charts.example.com", Name: "web", Version: "~1.2", Username: "me", Password: "t0p",
			},
			Values: map[string]any{"a": map[string]any{"b": 1.0, "c": 3}, "list": []any{2}},
		},
		{
			Name: "app", Namespace: "web", Timeout: 5 * time.Minute, Values: map[string]any{}, Chart: chart.Source{
				URL: "oci://registry.example.com/charts/app", Insecure: true,
			},
		},
		{
			Name: "tool", Namespace: "tools", Timeout: 5 * time.Minute, Values: map[string]any{},
			Chart: chart.Source{URL: "https://charts.example.com/tool-1.0.0.tgz"},
		},
		{
			Name: "own", Namespace: "web", Timeout: 5 * time.Minute, Values: map[string]any{},
			Chart: chart.Source{Folder: "./charts/own"},
		},
	}
	if diff := cmp.Diff(want, loaded.Addons.Releases, cmpopts.IgnoreFields(chart.Source{}, "Archive")); diff != "" {
		t.Error(diff)
	}
	c, err := chart.Load(loaded.Addons.Releases[3].Chart.Archive)
	if err != nil || c.Name != "other" {
		t.Errorf("chart %s, %v", c.Name, err)
	}
}

func TestMistakesInHelmReleases(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"[{chart: ./nowhere, namespace: a}]": "helmReleases[0].chart: open ",
		"[{BASE}, {chart: a, repoURL: 'https://y', namespace: a}]": "helmReleases[1]: " +
			"is the same release as helmReleases[0]",
		"[{BASE, values: [{valuesFile: gone.yaml}]}]":                       "helmReleases[0].values[0].valuesFile",
		"[{BASE, values: [{valuesFile: bad.yaml}]}]":                        "bad.yaml",
		"[{chart: a, repoURL: 'ftp://x', namespace: a}]":                    "helmReleases[0].repoURL: is not the location",
		"[{chart: a, repoURL: 'https://me:t0p@x', namespace: a}]":           "helmReleases[0].repoURL: contains credentials",
		"[{BASE, releaseName: A_b}]":                                        `"A_b" is not a valid release name`,
		"[{chart: a, chartURL: 'https://x', namespace: a, releaseName: a}]": "helmReleases[0].chartURL: chart is also set",
	} {
		text = strings.ReplaceAll(text, "BASE", "chart: a, repoURL: 'https://x', namespace: a")
		_, err := loadAddons(t, "helmReleases: "+text+"\n", map[string]string{"bad.yaml": "a: [\n"})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "t0p") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
