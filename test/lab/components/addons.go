package components

import (
	"context"
	"fmt"
)

// Versions of the images of kubeone's addons.
const (
	metricsServerVersion = "v0.9.0"
	localPathVersion     = "v0.0.30"
)

// addAddonImages builds and writes the images of the builder's addons.
func (b *Builder) addAddonImages(ctx context.Context, set *Set) error {
	for _, name := range b.Addons {
		spec, err := b.addonImage(ctx, set, name)
		if err != nil {
			return err
		}
		dir, err := b.writeImage(ctx, spec)
		if err != nil {
			return err
		}
		set.Images = append(set.Images, Image{Name: spec.Name, Tag: spec.Tag, Layout: dir})
	}
	return nil
}

// addonImage builds the program of an addon and describes its image.
func (b *Builder) addonImage(ctx context.Context, set *Set, addon string) (imageSpec, error) {
	switch addon {
	case "metrics-server":
		const module = "sigs.k8s.io/metrics-server"
		err := b.compileRecipe(ctx, set, Recipe{
			Name: addon, Module: module, Version: metricsServerVersion,
			Packages: map[string]string{addon: module + "/cmd/metrics-server"},
		})
		return imageSpec{
			Name: "metrics-server/metrics-server", Tag: metricsServerVersion,
			Layers:     []layerSpec{{Files: map[string]string{addon: set.Bin[addon]}}},
			Entrypoint: []string{"/" + addon},
		}, err
	case "default-storage-class":
		const program, module = "local-path-provisioner", "github.com/rancher/local-path-provisioner"
		err := b.compileRecipe(ctx, set, Recipe{
			Name: program, Module: module, Version: localPathVersion, Packages: map[string]string{program: module},
		})
		if err != nil {
			return imageSpec{}, err
		}
		shell, err := shellTools(ctx) // for the pods that make folders
		return imageSpec{
			Name: "rancher/local-path-provisioner", Tag: localPathVersion,
			Layers: []layerSpec{shell, {Files: map[string]string{"usr/bin/" + program: set.Bin[program]}}},
		}, err
	}
	return imageSpec{}, fmt.Errorf("addon %s: the lab cannot build its image", addon)
}
