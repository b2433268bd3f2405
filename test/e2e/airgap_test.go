//go:build e2e && long

package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestAirGap installs an addon of a folder, and charts of a folder, a repository and a registry from a bundle. Their
// sources, and the registry of their images, end before the installation.
func TestAirGap(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "airgap", ControlPlanes: 1, Workers: 1})
	a := &airGap{helmCharts: newHelmCharts(s)}
	s.runParts(
		part{"a bundle is created for the manifest", a.createForManifest},
		part{"a new cluster has the addon and the releases", a.installFromBundle},
		part{"members get the images of another bundle", a.addImages},
		part{"a chart that the bundle lacks is named", a.nameMissingChart},
	)
}

// airGap has the sources of charts, and the location of images.
type airGap struct {
	*helmCharts
	image    string // of every workload
	second   string // a bundle with one more image
	releases []any
}

// declareWorkloads writes the manifest with the addon web and the releases.
func (a *airGap) declareWorkloads(s *scenario) {
	s.Helper()
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		all["addons"] = map[string]any{"path": "./addons", "addons": []any{webEntry("2")}}
		all["helmReleases"] = a.releases
	})))
}

// createForManifest creates two bundles from a mirror, which then ends with the sources of charts.
func (a *airGap) createForManifest(s *scenario) {
	cache, err := components.DefaultCache()
	s.must(err)
	builder := components.NewBuilder(cache, s.Logf)
	builder.CNI = s.Lab.CNI
	set, err := builder.Build(s.Context(), s.Lab.KubernetesVersion)
	s.must(err)
	mirror, err := components.NewMirror(set)
	s.must(err)
	address, stop, err := mirror.Listen(s.Context(), "127.0.0.1:0")
	s.must(err)
	defer func() { s.must(stop()) }()
	defer a.repository.Close()

	a.image = address + "/agnhost:" + components.AgnhostTag
	a.web["image"] = a.image
	files := map[string]string{}
	for name, text := range addonFiles() {
		if strings.HasPrefix(name, "web/") {
			files[name] = strings.ReplaceAll(text, operator.AgnhostImage, a.image)
		}
	}
	s.writeAddons(files)
	a.writeWeb(s, "1.0.0")
	a.useImageInHook(s)
	a.releases = []any{a.webRelease(s), a.repositoryRelease("~1"), a.registryRelease()}
	a.declareWorkloads(s)

	n := slices.IndexFunc(set.Images, func(i components.Image) bool { return strings.HasSuffix(i.Name, "pause") })
	create := func(file string, more ...string) string {
		path := filepath.Join(s.Dir, file)
		s.runCommand(0, append([]string{"bundle", "create", "-f", path, "--mirror", "http://" + address,
			"--overwrite-registry", address, "--insecure-mirror", "--trust-source", "--arch", runtime.GOARCH}, more...),
			"2 charts")
		return path
	}
	s.Bundle = create("first.tar")
	a.second = create("second.tar", "--images", address+"/"+set.Images[n].Ref())
}

// useImageInHook changes the image in the hook of the chart, which has no value for it.
func (a *airGap) useImageInHook(s *scenario) {
	s.Helper()
	path := filepath.Join(filepath.Dir(s.Manifest), "charts/web/templates/hook.yaml")
	text, err := os.ReadFile(path)
	s.must(err)
	s.must(os.WriteFile(path, []byte(strings.ReplaceAll(string(text), operator.AgnhostImage, a.image)), 0o600))
}

func (a *airGap) installFromBundle(s *scenario) {
	installPlain(s)
	s.checkEqual("replicas of the addon", "2", s.runKubectl("-n", "addon-web", "get", "deployment", "web", "-o",
		"jsonpath={.status.availableReplicas}"))
	s.checkEqual("replicas of the chart", "1", s.runKubectl("-n", "web", "get", "deployment", "web", "-o",
		"jsonpath={.status.availableReplicas}"))
	listed := a.listReleases(s)
	for _, want := range []string{
		"web/web web-1.0.0 deployed", "settings/from-repository settings-1.1.0 deployed",
		"settings/from-registry settings-1.0.0 deployed",
	} {
		if !strings.Contains(listed, want) {
			s.Errorf("helm list says\n%s\nwant %s", listed, want)
		}
	}
	s.nothingToDo()
	first := s.Bundle
	s.Bundle = ""
	s.nothingToDo()
	s.Bundle = first
}

// addImages uses a bundle with one more image.
func (a *airGap) addImages(s *scenario) {
	s.Bundle = a.second
	s.runCommand(2, []string{"plan"}, "the host lacks images that the bundle has for addons and Helm releases")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	for _, h := range s.Machines() {
		found, err := h.Exec(s.Context(), "PATH=/opt/kubeone/bin:$PATH ctr -n k8s.io images ls "+
			`-q 'labels."io.cri-containerd.pinned"==pinned'`)
		s.must(err)
		if address, _, _ := strings.Cut(a.image, "/"); strings.Count(found, address+"/") != 2 {
			s.Errorf("%s: pinned images are\n%s", h.Hostname, found)
		}
	}
	s.nothingToDo()
}

func (a *airGap) nameMissingChart(s *scenario) {
	before := a.releases
	a.releases = []any{before[0], a.repositoryRelease("2.0.0"), before[2]}
	a.declareWorkloads(s)
	s.runCommand(2, []string{"plan"}, "Helm release settings/from-repository: no bundle contains chart settings 2.0.0",
		"(only 1.1.0); create the bundle again with kubeone bundle create -m")
	if r := s.Run(s.Context(), "apply", "-y"); r.Status == 0 || r.Status == 4 {
		s.Errorf("applied without the chart\n%s", r)
	}
	a.releases = before
	a.declareWorkloads(s)
	s.nothingToDo()
}
