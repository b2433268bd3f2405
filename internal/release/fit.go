package release

import (
	"strings"

	"kubeone/internal/desired"
	"kubeone/internal/network/plugins"
)

// Artifacts is all that the bundle has, under official names.
func (b *Bundle) Artifacts() desired.Artifacts { return b.index.Artifacts }

// For returns what the bundle has of the wanted release: nothing for a CNI or kube-proxy that is not wanted, and images
// under the names that the cluster uses, which are those of Want.OverwriteRegistry if there is one. Versions of what
// goes with Kubernetes are the bundle's, whatever this program would choose itself.
//
// The error is a *MismatchError when the bundle is for another release or lacks a part of the wanted one.
func (b *Bundle) For(want Want) (desired.Artifacts, error) {
	if err := want.check(); err != nil {
		return desired.Artifacts{}, err
	}
	if err := b.fits(want); err != nil {
		return desired.Artifacts{}, err
	}
	versions, err := VersionsFor(want.KubernetesVersion)
	if err != nil {
		return desired.Artifacts{}, err
	}
	have := b.index.Artifacts
	out := desired.Artifacts{KubernetesVersion: have.KubernetesVersion, Arch: have.Arch, Pushed: true}
	for _, f := range want.files(versions) {
		binary, ok := have.Binary(f.name)
		if !ok && !f.optional {
			return desired.Artifacts{}, b.mismatch("set of binaries", "no "+f.name, f.name)
		}
		if ok {
			out.Binaries = append(out.Binaries, binary)
		}
	}
	for _, i := range want.images(versions) {
		img, ok := find(have.Images, i)
		if !ok {
			return desired.Artifacts{}, b.mismatch("set of images", "no "+i.repository, i.official())
		}
		if want.OverwriteRegistry != "" {
			img.Name = rename(img.Name, want.OverwriteRegistry)
		}
		img.Source = img.Name
		out.Images = append(out.Images, img)
	}
	return out, nil
}

// fits compares what bundle and wish say about themselves.
func (b *Bundle) fits(want Want) error {
	switch {
	case b.index.KubernetesVersion != want.KubernetesVersion:
		return b.mismatch("Kubernetes version", b.index.KubernetesVersion, want.KubernetesVersion)
	case b.index.Arch != want.Arch:
		return b.mismatch("architecture", b.index.Arch, want.Arch)
	case want.CNI != b.index.CNI && want.brings():
		return b.mismatch("CNI", b.index.CNI, want.CNI)
	case want.KubeProxy && !b.index.KubeProxy:
		return b.mismatch("choice of kube-proxy", "none", "kube-proxy")
	}
	return nil
}

// brings reports whether the network plugin has binaries or images.
func (w Want) brings() bool {
	plugin, ok := plugins.Find(w.CNI)
	return ok && len(plugin.Binaries())+len(plugin.Images()) > 0
}

func (b *Bundle) mismatch(what, has, want string) error {
	return &MismatchError{Path: b.path, What: what, Has: has, Want: want}
}

// find returns the image from the same repository, whatever its tag.
func find(images []desired.Image, i image) (desired.Image, bool) {
	for _, have := range images {
		if strings.HasPrefix(have.Name, i.registry+"/"+i.repository+":") {
			return have, true
		}
	}
	return desired.Image{}, false
}

// rename puts another registry in place of an official name's host.
func rename(official, registry string) string {
	_, rest, _ := strings.Cut(official, "/")
	return strings.Trim(registry, "/") + "/" + rest
}
