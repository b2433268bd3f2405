package script

import (
	"kubeone/internal/testutil/configtest"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// value is what a stage finds in a variable.
func value(t *testing.T, v step.Variable) string {
	t.Helper()
	text, err := v.Value()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What a stage would read as other words, or as a line more, is in no script.
func TestAListHasTheWordsThatItWasMadeOf(t *testing.T) {
	t.Parallel()
	evil := []string{
		"https://example.com/kubelet\nkubelet evil " + strings.Repeat("e", 64) + " no x", "a b", "a\tb", "a\rb", " ",
		"\x00", "\x1b[2J", "\u0085", "\u00a0",
	}
	withArtifacts := func(change func(*desired.Artifacts, string)) func(*Input, string) {
		return func(in *Input, evil string) {
			a := configtest.Artifacts("registry.k8s.io")
			change(&a, evil)
			in.Want.Artifacts = map[string]desired.Artifacts{"amd64": a}
		}
	}
	for name, c := range map[string]struct {
		variable string
		change   func(in *Input, evil string)
	}{
		"URL": {"BINARIES", withArtifacts(func(a *desired.Artifacts, evil string) { a.Binaries[1].URL = evil })},
		"version": {"BINARIES",
			withArtifacts(func(a *desired.Artifacts, evil string) { a.Binaries[1].Version = evil })},
		"name of a binary": {"BINARIES",
			withArtifacts(func(a *desired.Artifacts, evil string) { a.Binaries[1].Name = evil })},
		"digest": {"BINARIES", withArtifacts(func(a *desired.Artifacts, evil string) { a.Binaries[1].SHA256 = evil })},
		"name of an image": {"IMAGES",
			withArtifacts(func(a *desired.Artifacts, evil string) { a.Images[0].Name = evil })},
		"source of an image": {"IMAGES",
			withArtifacts(func(a *desired.Artifacts, evil string) { a.Images[0].Source = evil })},
		"digest of an image": {"IMAGES",
			withArtifacts(func(a *desired.Artifacts, evil string) { a.Images[0].Digest = evil })},
		"image of etcd": {"ETCD_IMAGE", withArtifacts(func(a *desired.Artifacts, evil string) {
			a.Images[1].Name = "registry.k8s.io/etcd:" + evil
		})},
		"blob": {"IMAGE_BLOBS", func(in *Input, evil string) { in.ImageBlobs = []string{evil} }},
		"bundle": {"CONTROLLER_BUNDLES", func(in *Input, evil string) {
			in.Steps = []step.Intent{step.With(step.ControllerFilesParams{
				Bundles: []desired.BundleFile{{Name: evil, Size: 1}},
			})}
		}},
		"the controllers' blob": {"CONTROLLER_BLOBS", func(in *Input, evil string) {
			in.Steps = []step.Intent{step.With(step.ControllerFilesParams{
				Content: step.Content{Uploads: []string{evil}},
			})}
		}},
		"file of a component": {"COMPONENT_FILES", func(in *Input, evil string) {
			in.Want.Extras = []desired.Extra{{
				Component: desired.APIServer, Files: []desired.ComponentFile{{Path: "/etc/" + evil, Digest: "aa"}},
			}}
		}},
		"directory of a component": {"COMPONENT_DIRS", func(in *Input, evil string) {
			in.Want.Extras = []desired.Extra{{Component: desired.APIServer, Directories: []string{"/var/" + evil}}}
		}},
		"file to restore": {"RESTORE", func(in *Input, evil string) {
			in.Steps = []step.Intent{step.With(step.RestoreFilesParams{Files: []string{"/etc/" + evil}})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input("cp-1")
			c.change(&in, "fine")
			if _, err := Render(in); err != nil {
				t.Fatalf("a plain word: %v", err)
			}
			for _, text := range evil {
				in := input("cp-1")
				c.change(&in, text)
				if _, err := Render(in); err == nil || !strings.Contains(err.Error(), "is not a valid word in ") {
					t.Errorf("%q: %v, want an error about %s", text, err, c.variable)
				}
			}
		})
	}
}
