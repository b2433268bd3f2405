package v1beta2

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// pathForm is the path of an image's name, without a tag
// (https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests).
var pathForm = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// imageName checks the name of one image. "" is "not set".
func (f *findings) imageName(path, image string) {
	if image == "" {
		return
	}
	if _, err := name.ParseReference(image); err != nil {
		f.errorf(path, "write it as in registry.k8s.io/pause:3.10.1", "%q is not the name of an image", image)
	}
}

// longestRepository leaves room for an image's own name in the 255 characters that a name may have.
const longestRepository = 200

// imageRepository checks where images are looked for, below which they have their own names. "" is "not set". What is
// wrong may hold a password, so it is not repeated.
func (f *findings) imageRepository(path, example, repository string) {
	if repository == "" {
		return
	}
	hint := "write host[:port][/path], such as " + example
	host, below, hasPath := strings.Cut(repository, "/")
	_, port, _ := strings.Cut(host[strings.LastIndex(host, "]")+1:], ":")
	switch number, _ := strconv.Atoi(port); {
	case strings.Contains(repository, "://"):
		f.errorf(path, hint, "has a scheme, and names of images have none")
	case strings.Contains(repository, "@"):
		f.errorf(path, hint, "has an @, and is to name neither a user nor a digest")
	case strings.Contains(below, ":"):
		f.errorf(path, hint, "has a tag, and that follows from the version of Kubernetes")
	case len(repository) > longestRepository || !registryHost(host) || number > lastPort ||
		hasPath && !pathForm.MatchString(below):
		f.errorf(path, hint, "is not a repository of images")
	case host != "localhost" && !strings.ContainsAny(host, ".:"):
		f.errorf(path, hint, "names no registry: a host without a dot or a port is part of a path on docker.io")
	case host == "docker.io" && !hasPath:
		f.errorf(path, "write docker.io/USER", "names no user of docker.io, and is read as docker.io/library")
	case host == "index.docker.io":
		f.errorf(path, "write docker.io/USER", "is docker.io by a name that hosts do not know images by")
	}
}
