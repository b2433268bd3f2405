package componentconfig

import (
	"strings"

	"kubeone/internal/model/desired"
)

// withImages names the images of etcd and of cluster DNS outright. kubeadm knows tags of its own for each of its patch
// releases; a host without a way to the network must never look for one that the release, and so the bundle, does not
// have. What is not in the artefacts stays kubeadm's own.
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

// ImageParts splits "registry.k8s.io/coredns/coredns:v1.14.2" into repository, name and tag; the tag is empty where the
// name has none.
func ImageParts(image string) (repository, name, tag string) {
	at := strings.LastIndex(image, "/")
	name, tag, _ = strings.Cut(image[at+1:], ":")
	return strings.TrimSuffix(image[:at+1], "/"), name, tag
}
