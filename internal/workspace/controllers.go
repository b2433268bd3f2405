package workspace

import (
	"fmt"
	"os"

	"kubeone/internal/machines/controllerimage"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// controllers adds what is needed to run the controllers in the cluster, where they are to. They are this program: a
// cluster's controllers know what the program knows that was applied last.
func (w *Workspace) controllers() error {
	if !w.loaded.Controllers && !w.opt.WithMachines {
		return nil
	}
	if w.want.NoControllers {
		return fmt.Errorf("--with-machines, and machineController.deploy: false in %s: which is it?", w.opt.Manifest)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	arch, err := controllerimage.Arch(program)
	if err != nil {
		return fmt.Errorf("the controllers' image is made of this program: %w; run kubeone on a machine with Linux, "+
			"or kubeone controller outside the cluster", err)
	}
	image, err := controllerimage.Of(program, arch)
	if err != nil {
		return fmt.Errorf("make the controllers' image: %w", err)
	}
	want := desired.Image{Name: image.Name, Source: image.Name, Digest: image.Digest, Blobs: image.Blobs, Known: true}
	index, _, err := release.ImageIndex([]desired.Image{want}, arch)
	if err != nil {
		return err
	}
	w.want.Controllers = &desired.Controllers{Image: want, Arch: arch, Index: string(index)}
	w.releases.image = image
	if w.releases.bundles != nil {
		w.want.Controllers.Bundles, err = w.releases.bundles.Files()
	}
	return err
}
