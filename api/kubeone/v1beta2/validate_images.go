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
		f.errorf(path, "use a name such as registry.k8s.io/pause:3.10.1", "%q is not a valid image name", image)
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
		f.errorf(path, hint, "contains a scheme, which image names do not have")
	case strings.Contains(repository, "@"):
		f.errorf(path, hint, "contains an @; user names and digests are not allowed here")
	case strings.Contains(below, ":"):
		f.errorf(path, hint, "contains a tag; the tag depends on the Kubernetes version")
	case len(repository) > longestRepository || !registryHost(host) || number > lastPort ||
		hasPath && !pathForm.MatchString(below):
		f.errorf(path, hint, "is not a valid image repository")
	case host != "localhost" && !strings.ContainsAny(host, ".:"):
		f.errorf(path, hint, "does not name a registry; a name without a dot or a port is a path on docker.io")
	case host == "docker.io" && !hasPath:
		f.errorf(path, "write docker.io/USER", "does not name a docker.io user, so it means docker.io/library")
	case host == "index.docker.io":
		f.errorf(path, "write docker.io/USER", "is an alias of docker.io that hosts do not use")
	}
}
