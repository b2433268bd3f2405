package release

import "kubeone/internal/model/desired"

// Names returns the images of a release by name only, without digests: what manifests refer to. It asks nobody.
func Names(w Want) (desired.Artifacts, error) {
	v, err := VersionsFor(w.KubernetesVersion)
	if err != nil {
		return desired.Artifacts{}, err
	}
	a := desired.Artifacts{KubernetesVersion: w.KubernetesVersion, Arch: w.Arch}
	for _, i := range w.images(v) {
		a.Images = append(a.Images, desired.Image{Name: w.location(i), Roles: i.roles})
	}
	return a, nil
}
