package network

import (
	"testing"

	"kubeone/internal/model/desired"
)

func artifacts(images ...string) map[string]desired.Artifacts {
	var a desired.Artifacts
	for _, name := range images {
		a.Images = append(a.Images, desired.Image{Name: name})
	}
	return map[string]desired.Artifacts{"amd64": a}
}

func TestImageIsFoundByRepository(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ghcr.io/net/plugin:v0.26.7", "localhost:5000/net/plugin", "ghcr.io/net/plugin:v0.26.7@sha256:0123",
		"mirror.example:5000/a/b/net/plugin:v1",
	} {
		got, err := ImageNamed(artifacts("registry.k8s.io/pause:3.10.2", name), "net/plugin")
		if err != nil || got != name {
			t.Errorf("image of %s = %q, %v", name, got, err)
		}
	}
}

func TestImageMustBeOne(t *testing.T) {
	t.Parallel()
	two := artifacts("ghcr.io/net/plugin:v1")
	two["arm64"] = artifacts("ghcr.io/net/plugin:v2")["amd64"]
	for name, all := range map[string]map[string]desired.Artifacts{
		"none": nil, "only a similar one": artifacts("ghcr.io/net/plugin-extra:v1", "ghcr.io/my-net/other:v1"),
		"two": two,
	} {
		if got, err := ImageNamed(all, "net/plugin"); err == nil {
			t.Errorf("%s: %q without an error", name, got)
		}
	}
}

func TestAssetsAreNamedByArchitecture(t *testing.T) {
	t.Parallel()
	if got := (Binary{Asset: "plugin-linux-{arch}-v1.tgz"}).AssetFor("arm64"); got != "plugin-linux-arm64-v1.tgz" {
		t.Error(got)
	}
}
