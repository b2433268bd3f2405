package workspace

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/engine"
	"kubeone/internal/release"
)

// podOf returns a Pod, which may have template actions.
func podOf(name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: a, image: '" + image +
		"'}]}\n"
}

// chartServer serves the chart web as repository.
func chartServer(t *testing.T) *httptest.Server {
	t.Helper()
	archive, err := chart.Pack("web", fstest.MapFS{
		"Chart.yaml":          {Data: []byte("apiVersion: v2\nname: web\nversion: 1.2.5\n")},
		"values.yaml":         {Data: []byte("tag: '1'\n")},
		"templates/pod.yaml":  {Data: []byte(podOf("web", "example.com/web:{{ .Values.tag }}"))},
		"templates/hook.yaml": {Data: []byte(podOf("hook, annotations: {helm.sh/hook: pre-install}", "hook"))},
		"templates/test.yaml": {Data: []byte(podOf("test, annotations: {helm.sh/hook: test}", "example.com/test:1"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = w.Write([]byte("entries: {web: [{name: web, version: 1.2.5, urls: [web.tgz]}]}\n"))
		case "/web.tgz":
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// bundleManifest writes a manifest with these fields, an addon and a chart in a folder.
func bundleManifest(t *testing.T, fields string) Options {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubeone.yaml": manifestText + fields, "addons/own/pod.yaml": podOf("own", "example.com/{{ .Params.name }}:1"),
		"charts/app/Chart.yaml":         "apiVersion: v2\nname: app\nversion: 1.0.0\n",
		"charts/app/templates/pod.yaml": podOf("app", "example.com/own:1"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	return Options{Manifest: filepath.Join(dir, "kubeone.yaml")}
}

func TestABundleFollowsTheManifest(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	o := bundleManifest(t, `
addons: {path: ./addons, globalParams: {name: own}, addons: [{name: default-storage-class}]}
helmReleases:
- {chart: web, repoURL: "`+server.URL+`", version: ~1.2, namespace: web, insecure: true, values: [{inline: {tag: "2"}}]}
- {chart: ./charts/app, namespace: app}
`)
	got, err := ReadBundleContents(t.Context(), o, release.Source{RetryPause: 1})
	if err != nil {
		t.Fatal(err)
	}
	plugin, _ := plugins.Find("flannel", "")
	want := release.Want{
		KubernetesVersion: "1.36.3", CNI: "flannel", CNIVersion: plugin.Version(), KubeProxy: true,
		Addons: "default-storage-class,metrics-server",
	}
	if diff := cmp.Diff(want, got.Want); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/own:1", "example.com/web:2", "hook"}, got.Workloads.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if len(got.Workloads.Charts) != 1 || got.Workloads.Charts[0].Content.Version != "1.2.5" {
		t.Errorf("charts: %+v", got.Workloads.Charts)
	}
	if diff := cmp.Diff([]string{"Helm release web/web: pods with image hook do not start without its registry, because " +
		"they pull it each time; set another imagePullPolicy"}, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestReleasesThatCannotBeBundled(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	for fields, says := range map[string]string{
		`{chart: web, repoURL: "` + server.URL + `", version: "9", namespace: web, insecure: true}`:   "no such chart",
		`{chart: other, repoURL: "` + server.URL + `", namespace: web, insecure: true}`:               "no such chart",
		`{chartURL: "` + server.URL + `/index.yaml", releaseName: w, namespace: web, insecure: true}`: "Helm release web/w: ",
	} {
		_, err := ReadBundleContents(t.Context(), bundleManifest(t, "helmReleases: ["+fields+"]\n"),
			release.Source{RetryPause: 1})
		var config *engine.ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", fields, err)
		}
	}
	away := bundleManifest(t, "helmReleases: [{chart: web, repoURL: 'https://127.0.0.1:1', namespace: web}]\n")
	var chartError *release.ChartError
	if _, err := ReadBundleContents(t.Context(), away, release.Source{RetryPause: 1}); !errors.As(err, &chartError) {
		t.Errorf("a repository that does not answer: %v", err)
	}
}

// The images of a feature of the network plugin are in its chart only.
func TestABundleHasTheImagesOfFeaturesOfTheNetworkPlugin(t *testing.T) {
	t.Parallel()
	archive, err := chart.Pack("cilium", fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: cilium\nversion: 1.20.1\n")},
		"templates/agent.yaml": {Data: []byte(podOf("agent", "{{ .Values.image.override }}"))},
		"templates/relay.yaml": {Data: []byte("{{ if .Values.hubble.enabled }}\n" +
			podOf("relay", "example.com/relay:1") + "{{ end }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := http.NewServeMux()
	served.HandleFunc("/helm.cilium.io/cilium-1.20.1.tgz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(archive)
	})
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	src := release.Source{Mirror: server.URL, InsecureMirror: true, Trusted: true, RetryPause: 1}
	for enabled, want := range map[string][]string{"true": {"example.com/relay:1"}, "false": nil} {
		o := bundleManifest(t, "")
		text, err := os.ReadFile(o.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		write(t, o.Manifest, strings.Replace(string(text), "flannel: {}", "cilium: {version: 1.20.1, enableHubble: "+
			enabled+"}", 1))
		got, err := ReadBundleContents(t.Context(), o, src)
		if err != nil {
			t.Fatal(err)
		}
		if got.Want.CNI != "cilium" || got.Want.CNIVersion != "1.20.1" {
			t.Errorf("%+v", got.Want)
		}
		if diff := cmp.Diff(want, got.Workloads.Images); diff != "" {
			t.Errorf("images with enableHubble: %s (-want +got):\n%s", enabled, diff)
		}
	}
}
