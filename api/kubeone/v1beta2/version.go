package v1beta2

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/decide/skew"
)

// The minor versions of Kubernetes that this release of kubeone installs.
const (
	OldestMinor = 34
	NewestMinor = 37
)

// SupportedVersions returns the supported versions, for messages.
func SupportedVersions() string {
	return fmt.Sprintf("1.%d to 1.%d", OldestMinor, NewestMinor)
}

// version checks a mandatory Kubernetes version, and reports whether kubeone can install it.
func (f *findings) version(path, v string) bool {
	if v == "" {
		f.missing(path, fmt.Sprintf("use a version from %s, such as 1.%d.0", SupportedVersions(), NewestMinor))
		return false
	}
	parsed, ok := f.semantic(path, v, "1.36.3")
	if !ok {
		return false
	}
	switch {
	case parsed.Major() != 1 || parsed.Minor() < OldestMinor || parsed.Minor() > NewestMinor:
		f.errorf(path, "", "Kubernetes %s is not supported; this version of kubeone supports %s", v,
			SupportedVersions())
	case strings.Contains(v, "-eks-") || parsed.BuildMetadata() != "":
		f.errorf(path, "use the version without the vendor suffix",
			"%q is a vendor build; only official releases of Kubernetes can be installed", v)
	default:
		return true
	}
	return false
}

func (f *findings) semantic(path, v, example string) (*version.Version, bool) {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		f.errorf(path, "use all three numbers, such as "+example, "%q is not a semantic version", v)
	}
	return parsed, err == nil
}

// hostVersions checks the versions of a worker against the cluster's.
func (f *findings) hostVersions(path string, v HostVersions, cluster string) {
	kubelet := cluster
	if v.Kubernetes != "" {
		if !f.version(path+".kubernetes", v.Kubernetes) {
			return
		}
		kubelet = v.Kubernetes
		f.lagging(path+".kubernetes", kubelet, cluster)
	}
	if v.Containerd == "" {
		return
	}
	parsed, ok := f.semantic(path+".containerd", v.Containerd, "2.4.2")
	switch {
	case !ok:
	case parsed.BuildMetadata() != "":
		f.errorf(path+".containerd", "use the version without the vendor suffix",
			"%q is a vendor build; only official releases of containerd can be installed", v.Containerd)
	default:
		if hint := skew.SupportedContainerd(kubelet); hint != "" && skew.Containerd(kubelet, v.Containerd) != nil {
			f.errorf(path+".containerd", "use "+hint, "kubelet %s does not work with containerd %s", kubelet,
				v.Containerd)
		}
	}
}

// lagging checks that a worker's kubelet may use API servers of the cluster's version.
func (f *findings) lagging(path, kubelet, cluster string) {
	k := version.MustParseSemantic(kubelet)
	c, err := version.ParseSemantic(cluster)
	if err != nil {
		return // the mistake is reported for versions.kubernetes
	}
	if c.LessThan(k) {
		f.errorf(path, "upgrade the cluster first (versions.kubernetes)",
			"kubelet %s is newer than versions.kubernetes %s", kubelet, cluster)
	} else if err := skew.Check(cluster, kubelet); err != nil {
		f.errorf(path, "use a newer version", "%v", err)
	}
}
