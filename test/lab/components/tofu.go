package components

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
)

// TofuVersion is the version of OpenTofu in scenarios.
const TofuVersion = "v1.12.6"

func tofuRecipe() Recipe {
	const module = "github.com/opentofu/opentofu"
	release := module + "/releases/download/" + TofuVersion + "/tofu_" + strings.TrimPrefix(TofuVersion, "v") + "_"
	return Recipe{
		Name: "tofu", Module: module, Version: TofuVersion, Packages: map[string]string{"tofu": module + "/cmd/tofu"},
		LDFlags: "-X " + module + "/version.dev=no",
		Downloads: []Download{{
			URL:      release + "linux_" + runtime.GOARCH + ".tar.gz",
			Checksum: release + "SHA256SUMS",
			Members:  map[string]string{"tofu": "tofu"},
		}},
	}
}

// Tofu returns the path of OpenTofu's program, and builds it if the cache lacks it.
func (b *Builder) Tofu(ctx context.Context) (string, error) {
	var dir string
	err := b.Log.During("OpenTofu "+TofuVersion, func() (err error) {
		dir, err = b.binariesDir(ctx, tofuRecipe())
		return err
	})
	return filepath.Join(dir, "tofu"), err
}
