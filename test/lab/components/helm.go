package components

import (
	"context"
	"path/filepath"
	"runtime"
)

// HelmVersion is the version of the helm command in scenarios.
const HelmVersion = "v4.3.1"

func helmRecipe() Recipe {
	const module = "helm.sh/helm/v4"
	release := "get.helm.sh/helm-" + HelmVersion + "-linux-" + runtime.GOARCH + ".tar.gz"
	return Recipe{
		Name: "helm", Module: module, Version: HelmVersion, Packages: map[string]string{"helm": module + "/cmd/helm"},
		Downloads: []Download{{
			URL: release, Checksum: release + ".sha256sum",
			Members: map[string]string{"helm": "linux-" + runtime.GOARCH + "/helm"},
		}},
	}
}

// Helm returns the path of the helm command, and builds it if the cache lacks it.
func (b *Builder) Helm(ctx context.Context) (string, error) {
	var dir string
	err := b.Log.During("Helm "+HelmVersion, func() (err error) {
		dir, err = b.binariesDir(ctx, helmRecipe())
		return err
	})
	return filepath.Join(dir, "helm"), err
}
