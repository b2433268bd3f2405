//go:build e2e && long

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"kubeone/internal/addons/chart"
	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestHelmReleases keeps Helm releases in a cluster: charts from a folder, a repository and a registry with a password.
func TestHelmReleases(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "helm", ControlPlanes: 1, Workers: 1})
	h := newHelmCharts(s)
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"releases are installed, killed once in each", h.installReleases},
		part{"changed values and versions are rolled out", h.upgradeReleases},
		part{"an upgrade that was killed is completed", h.killUpgrade},
		part{"edited objects and releases are found and mended", h.mendReleases},
		part{"an upgrade that fails is rolled back", h.failUpgrade},
		part{"mistakes are refused, and sources that do not answer are named", h.refuseReleases},
		part{"releases that are no longer declared are uninstalled", h.removeReleases},
	)
}

// helmCharts are the sources of charts for one scenario. The charts are also in folders below the manifest.
type helmCharts struct {
	program    string // the helm command
	repository *httptest.Server
	registry   string // host and port
	web        map[string]any
}

const (
	helmUser, helmPassword = "puller", "t0p-s3cret-of-the-registry"
	helmValue              = "t0p-s3cret-of-the-values"
)

// webChart has a workload, a password that it makes once, a hook that takes some seconds, and a schema of its values.
func webChart(version string) map[string]string {
	return map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"values.yaml": "replicas: 1\nimage: " + operator.AgnhostImage + "\ntoken: none\n",
		"values.schema.json": `{"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 5}},
			"additionalProperties": true}`,
		"templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {version: "{{ .Chart.Version }}"}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: web
        image: {{ .Values.image }}
        imagePullPolicy: IfNotPresent
        args: [netexec]
`,
		"templates/password.yaml": `{{- $old := lookup "v1" "Secret" .Release.Namespace "password" }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data:
  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
  token: {{ .Values.token | b64enc }}
`,
		"templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: hook
        image: ` + operator.AgnhostImage + `
        imagePullPolicy: IfNotPresent
        command: [/agnhost, entrypoint-tester]
`,
	}
}

// settingsChart has one object.
func settingsChart(version string) map[string]string {
	return map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: settings\nversion: " + version + "\n",
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n" +
			"data: {version: \"{{ .Chart.Version }}\"}\n",
	}
}

// newHelmCharts serves the charts: settings in a repository and a registry, which both ask for a password.
func newHelmCharts(s *scenario) *helmCharts {
	s.Helper()
	cache, err := components.DefaultCache()
	s.must(err)
	h := &helmCharts{web: map[string]any{"replicas": 1, "token": helmValue}}
	h.program, err = components.NewBuilder(cache, s.Logf).Helm(s.Context())
	s.must(err)
	files := http.NewServeMux()
	index := "apiVersion: v1\nentries:\n  settings:\n"
	for _, version := range []string{"1.0.0", "1.1.0"} {
		archive := h.packChart(s, settingsChart(version))
		index += fmt.Sprintf("  - {name: settings, version: %s, urls: [settings-%s.tgz]}\n", version, version)
		files.HandleFunc("/settings-"+version+".tgz", func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = w.Write(archive)
		})
	}
	files.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(index)) })
	h.repository = httptest.NewTLSServer(askPassword(files))
	s.Cleanup(h.repository.Close)
	images := httptest.NewServer(askPassword(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	s.Cleanup(images.Close)
	h.registry = strings.TrimPrefix(images.URL, "http://")
	h.pushChart(s, "1.0.0", settingsChart("1.0.0"))
	return h
}

func askPassword(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != helmUser || password != helmPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// packChart returns the archive of a chart.
func (h *helmCharts) packChart(s *scenario, files map[string]string) []byte {
	s.Helper()
	dir := filepath.Join(s.TempDir(), "chart")
	writeFiles(s, dir, files)
	archive, err := chart.Pack("chart", os.DirFS(dir))
	s.must(err)
	return archive
}

// pushChart pushes a chart to the registry as the helm command does.
func (h *helmCharts) pushChart(s *scenario, tag string, files map[string]string) {
	s.Helper()
	ref, err := name.NewTag(h.registry+"/charts/settings:"+tag, name.Insecure)
	s.must(err)
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json"),
		"application/vnd.cncf.helm.config.v1+json")
	img, err = mutate.AppendLayers(img, static.NewLayer(h.packChart(s, files),
		"application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
	s.must(err)
	s.must(remote.Write(ref, img, remote.WithContext(s.Context()), remote.WithAuth(&authn.Basic{Username: helmUser,
		Password: helmPassword})))
}

func writeFiles(s *scenario, dir string, files map[string]string) {
	s.Helper()
	for file, text := range files {
		path := filepath.Join(dir, file)
		s.must(os.MkdirAll(filepath.Dir(path), 0o700))
		s.must(os.WriteFile(path, []byte(text), 0o600))
	}
}

// declareReleases writes the manifest with these releases, and the chart web in a folder next to it.
func (h *helmCharts) declareReleases(s *scenario, releases ...map[string]any) {
	s.Helper()
	list := make([]any, 0, len(releases))
	for _, r := range releases {
		list = append(list, r)
	}
	s.must(s.WriteManifest(editFields(func(all map[string]any) { all["helmReleases"] = list })))
}

func (h *helmCharts) writeWeb(s *scenario, version string) {
	s.Helper()
	writeFiles(s, filepath.Join(filepath.Dir(s.Manifest), "charts/web"), webChart(version))
}

// webRelease is the chart of the folder, with values of a file and of the manifest.
func (h *helmCharts) webRelease(s *scenario) map[string]any {
	s.Helper()
	writeFiles(s, filepath.Dir(s.Manifest), map[string]string{"values.yaml": "replicas: 3\n"})
	return map[string]any{
		"chart": "./charts/web", "namespace": "web", "wait": true, "timeout": "60s",
		"values": []any{map[string]any{"valuesFile": "values.yaml"}, map[string]any{"inline": h.web}},
	}
}

func (h *helmCharts) repositoryRelease(version string) map[string]any {
	return map[string]any{
		"chart": "settings", "repoURL": h.repository.URL, "version": version, "releaseName": "from-repository",
		"namespace": "settings", "insecure": true,
		"auth": map[string]any{"username": helmUser, "password": helmPassword},
	}
}

func (h *helmCharts) registryRelease() map[string]any {
	return map[string]any{
		"chart": "settings", "repoURL": "oci://" + h.registry + "/charts", "version": "1.0.0",
		"releaseName": "from-registry", "namespace": "settings", "insecure": true,
		"auth": map[string]any{"username": helmUser, "password": helmPassword},
	}
}

// runHelm runs the helm command and returns its output.
func (h *helmCharts) runHelm(s *scenario, args ...string) []byte {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), h.program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.Dir, "admin.conf"))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		s.Fatalf("helm %v: %v: %s", args, err, &problem)
	}
	return text
}

// listReleases returns what "helm list" says: "namespace/name chart status revision".
func (h *helmCharts) listReleases(s *scenario) string {
	s.Helper()
	text := h.runHelm(s, "list", "-A", "-o", "json")
	var listed []struct{ Name, Namespace, Revision, Chart, Status string }
	s.must(json.Unmarshal(text, &listed))
	lines := make([]string, 0, len(listed))
	for _, r := range listed {
		lines = append(lines, fmt.Sprintf("%s/%s %s %s %s", r.Namespace, r.Name, r.Chart, r.Status, r.Revision))
	}
	return strings.Join(lines, "\n")
}

func (h *helmCharts) apply(s *scenario, texts ...string) operator.Result {
	s.Helper()
	return s.runCommand(0, []string{"apply", "-y"}, append(texts, "Done. The cluster matches the manifest.")...)
}

func (h *helmCharts) installReleases(s *scenario) {
	s.Bundle = "" // it has no charts
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	h.writeWeb(s, "1.0.0")
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1.0"), h.registryRelease())
	r := s.runCommand(2, []string{"plan"}, "install Helm release web/web", "not in the cluster",
		"install Helm release settings/from-repository", "install Helm release settings/from-registry")
	for _, name := range []string{"release/web/web", "release/settings/from-repository",
		"release/settings/from-registry"} {
		i, err := s.ApplyInterrupted(s.Context(), operator.Failure{
			Way: operator.Kill, Moment: operator.Moment{Event: apply.StepStarted, Step: name},
		})
		s.must(err)
		if len(i.At) != 1 || i.Status != -1 {
			s.Errorf("want the run killed at %s\n%s", name, i.Result)
		}
	}
	done := h.apply(s)
	for _, secret := range []string{helmPassword, helmValue} {
		if strings.Contains(r.Text()+done.Text(), secret) {
			s.Errorf("the output contains a secret")
		}
	}
	s.must(s.FetchKubeconfig(s.Context()))
	listed := h.listReleases(s)
	for _, want := range []string{
		"web/web web-1.0.0 deployed", "settings/from-repository settings-1.0.0 deployed",
		"settings/from-registry settings-1.0.0 deployed",
	} {
		if !strings.Contains(listed, want) {
			s.Errorf("helm list says\n%s\nwant %s", listed, want)
		}
	}
	s.nothingToDo()
}

// upgradeReleases changes values, the version of a chart in a folder, and the range of versions in a repository.
func (h *helmCharts) upgradeReleases(s *scenario) {
	password := s.runKubectl("-n", "web", "get", "secret", "password", "-o", "jsonpath={.data.password}")
	h.writeWeb(s, "1.1.0")
	h.web["replicas"] = 2
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1"), h.registryRelease())
	r := s.runCommand(2, []string{"plan", "--diff"}, "upgrade Helm release web/web",
		"its chart and values differ from the manifest", "version 1.0.0 -> 1.1.0", "replicas: 2",
		"upgrade Helm release settings/from-repository")
	if strings.Contains(r.Text(), helmValue) || strings.Contains(r.Text(), "password:") {
		s.Errorf("the differences contain a secret, or a password that does not change:\n%s", r)
	}
	s.runCommand(0, []string{"addons", "list"}, "web/web", "helm", "outdated")
	h.apply(s)
	s.checkEqual("the password that the chart made", password,
		s.runKubectl("-n", "web", "get", "secret", "password", "-o", "jsonpath={.data.password}"))
	s.checkEqual("replicas", "2", s.runKubectl("-n", "web", "get", "deployment", "web", "-o",
		"jsonpath={.status.availableReplicas}"))
	s.checkEqual("the version from the repository", "1.1.0",
		s.runKubectl("-n", "settings", "get", "configmap", "from-repository", "-o", "jsonpath={.data.version}"))
	s.nothingToDo()
}

// killUpgrade kills the program while Helm upgrades a release.
func (h *helmCharts) killUpgrade(s *scenario) {
	h.web["replicas"] = 1
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1"), h.registryRelease())
	r, err := s.Start(s.Context(), "apply", "-y")
	s.must(err)
	if _, found := r.Await(operator.Step(apply.StepStarted, "release/web/web")); !found {
		s.Fatalf("the step did not start\n%s", r.Wait())
	}
	s.eventually("the upgrade begins", time.Minute, func(context.Context) error {
		if text := s.runKubectl("-n", "web", "get", "secret", "-l", "owner=helm,status=pending-upgrade", "-o",
			"name"); text == "" {
			return errors.New("no release is pending")
		}
		return nil
	})
	s.must(r.Kill())
	r.Wait()
	s.runCommand(2, []string{"plan"}, "an operation on it was interrupted")
	h.apply(s)
	s.nothingToDo()
}

// mendReleases edits an object, and uses helm to change a release that kubeone keeps.
func (h *helmCharts) mendReleases(s *scenario) {
	s.runKubectl("-n", "web", "scale", "deployment", "web", "--replicas", "4")
	s.runKubectl("-n", "settings", "delete", "configmap", "from-registry")
	s.runCommand(2, []string{"plan"}, "Deployment web differs in spec.replicas", "ConfigMap from-registry is missing")
	s.runCommand(3, []string{"status"}, "Deployment web differs in spec.replicas")
	h.apply(s)
	s.nothingToDo()
	dir := s.TempDir()
	writeFiles(s, dir, settingsChart("1.0.0"))
	h.runHelm(s, "upgrade", "from-repository", dir, "-n", "settings", "--set", "a=b")
	s.runCommand(2, []string{"plan"}, "upgrade Helm release settings/from-repository",
		"its chart and values differ from the manifest")
	h.apply(s)
	s.checkEqual("the version from the repository", "1.1.0",
		s.runKubectl("-n", "settings", "get", "configmap", "from-repository", "-o", "jsonpath={.data.version}"))
	s.nothingToDo()
}

// failUpgrade upgrades to a workload that never becomes ready.
func (h *helmCharts) failUpgrade(s *scenario) {
	h.web["image"] = "example.com/nowhere:1"
	release := h.webRelease(s)
	release["timeout"] = "20s"
	h.declareReleases(s, release, h.repositoryRelease("~1"), h.registryRelease())
	s.runCommand(12, []string{"apply", "-y"}, "upgrade the Helm release web")
	s.checkEqual("replicas after the rollback", "1", s.runKubectl("-n", "web", "get", "deployment", "web", "-o",
		"jsonpath={.status.availableReplicas}"))
	s.runCommand(2, []string{"plan"}, "its values differ from the manifest")
	delete(h.web, "image")
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1"), h.registryRelease())
	s.nothingToDo() // the rollback left what the manifest has again
}

func (h *helmCharts) refuseReleases(s *scenario) {
	for field, says := range map[string]string{
		`replicas=9`: "maximum: got 9, want 5",
	} {
		name, _, _ := strings.Cut(field, "=")
		before := h.web[name]
		h.web[name] = 9
		h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1"), h.registryRelease())
		s.runCommand(15, []string{"plan"}, "Helm release web/web", says)
		h.web[name] = before
	}
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("9.9.9"), h.registryRelease())
	s.runCommand(15, []string{"plan"}, "settings/from-repository", "version =9.9.9 is not among the 2 available ones")
	wrong := h.repositoryRelease("1.0.0")
	wrong["auth"] = map[string]any{"username": helmUser, "password": "wrong"}
	h.declareReleases(s, h.webRelease(s), wrong, h.registryRelease())
	s.runCommand(2, []string{"plan"}, "upgrade Helm release settings/from-repository", "HTTP 401")
	away := h.repositoryRelease("1.0.0")
	away["repoURL"] = "https://127.0.0.1:1"
	h.declareReleases(s, h.webRelease(s), away, h.registryRelease())
	s.runCommand(2, []string{"plan"}, "cannot fetch chart settings 1.0.0 from https://127.0.0.1:1", "connection refused")
	if r := s.Run(s.Context(), "apply", "-y"); r.Status == 0 || r.Status == 4 {
		s.Errorf("applied without the chart\n%s", r)
	}
}

func (h *helmCharts) removeReleases(s *scenario) {
	h.declareReleases(s, h.webRelease(s), h.repositoryRelease("~1"))
	s.runCommand(2, []string{"plan"}, "uninstall Helm release settings/from-registry", "it is no longer in the manifest")
	h.apply(s)
	h.declareReleases(s)
	h.apply(s, "uninstall Helm release web/web")
	s.checkEqual("helm list", "", h.listReleases(s))
	s.checkEqual("workloads", "", s.runKubectl("-n", "web", "get", "deployment", "-o", "name"))
	s.nothingToDo()
}
