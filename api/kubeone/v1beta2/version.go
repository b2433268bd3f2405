package v1beta2

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// The Kubernetes versions that this release of the program installs, by minor.
const (
	OldestMinor = 34
	NewestMinor = 36
)

// SupportedVersions says which versions are supported, for messages.
func SupportedVersions() string {
	return fmt.Sprintf("1.%d to 1.%d", OldestMinor, NewestMinor)
}

func (f *findings) version(path, v string) {
	if v == "" {
		f.missing(path, fmt.Sprintf("name a version from %s, such as 1.%d.0", SupportedVersions(), NewestMinor))
		return
	}
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		hint := "write all three numbers, such as 1.36.3"
		f.errorf(path, hint, "%q is not a semantic version", v)
		return
	}
	switch {
	case parsed.Major() != 1 || parsed.Minor() < OldestMinor || parsed.Minor() > NewestMinor:
		f.errorf(path, "", "Kubernetes %s is not supported: this version of kubeone installs %s", v,
			SupportedVersions())
	case strings.Contains(v, "-eks-") || parsed.BuildMetadata() != "":
		f.errorf(path, "name the release without the vendor's suffix",
			"%q is a vendor's build: only official releases of Kubernetes can be installed", v)
	}
}
