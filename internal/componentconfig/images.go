package componentconfig

import (
	"strings"

	"kubeone/internal/model/desired"
)

// withImages sets the images of etcd and cluster DNS explicitly. Each kubeadm patch release knows its own tags, and a
// host without network access must never need an image that is not in the release, and so not in the bundle. Images
// that are not in the artifacts stay kubeadm's.
func withImages(configuration object, a desired.Artifacts) object {
	for _, i := range a.Images {
		repository, name, tag := ImageParts(i.Name)
		if tag == "" {
			continue
		}
		switch name {
		case "etcd":
			local := configuration["etcd"].(object)["local"].(object)
			local["imageRepository"], local["imageTag"] = repository, tag
		case "coredns":
			configuration["dns"] = object{"imageRepository": repository, "imageTag": tag}
		}
	}
	return configuration
}

// ImageParts splits "registry.k8s.io/coredns/coredns:v1.14.2" into repository, name and tag; the tag may be empty.
func ImageParts(image string) (repository, name, tag string) {
	at := strings.LastIndex(image, "/")
	name, tag, _ = strings.Cut(image[at+1:], ":")
	return strings.TrimSuffix(image[:at+1], "/"), name, tag
}
