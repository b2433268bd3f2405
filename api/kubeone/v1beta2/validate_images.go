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

// imageName checks the name of an image. "" means unset.
func (f *findings) imageName(path, image string) {
	if image == "" {
		return
	}
	if _, err := name.ParseReference(image); err != nil {
		f.errorf(path, "write it as in registry.k8s.io/pause:3.10.1", "%q is not the name of an image", image)
	}
}

// longestRepository leaves room for an image's own name, because names have at most 255 characters.
const longestRepository = 200

// imageRepository checks a repository below which images have their own names. "" means unset. Messages do not repeat
// the value, which may hold a password.
func (f *findings) imageRepository(path, example, repository string) {
	if repository == "" {
		return
	}
	hint := "write host[:port][/path], such as " + example
	host, below, hasPath := strings.Cut(repository, "/")
	_, port, _ := strings.Cut(host[strings.LastIndex(host, "]")+1:], ":")
	switch number, _ := strconv.Atoi(port); {
	case strings.Contains(repository, "://"):
		f.errorf(path, hint, "has a scheme; image names have none")
	case strings.Contains(repository, "@"):
		f.errorf(path, hint, "has an @; write no user and no digest")
	case strings.Contains(below, ":"):
		f.errorf(path, hint, "has a tag; the Kubernetes version determines it")
	case len(repository) > longestRepository || !registryHost(host) || number > lastPort ||
		hasPath && !pathForm.MatchString(below):
		f.errorf(path, hint, "is not a repository of images")
	case host != "localhost" && !strings.ContainsAny(host, ".:"):
		f.errorf(path, hint, "names no registry: a host without a dot or a port is part of a path on docker.io")
	case host == "docker.io" && !hasPath:
		f.errorf(path, "write docker.io/USER", "names no user of docker.io, so it means docker.io/library")
	case host == "index.docker.io":
		f.errorf(path, "write docker.io/USER", "is docker.io by a name that hosts do not use")
	}
}
