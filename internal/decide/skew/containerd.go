package skew

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestContainerd returns the oldest minor version of containerd that kubelets of a minor version of Kubernetes 1 work
// with here. Kubelets before 1.36 would work with containerd 1.7, but hosts get a configuration in a format that
// containerd reads since 2.0 (https://github.com/containerd/containerd/blob/main/docs/cri/config.md). Kubelets since
// 1.36 need 2.0 themselves: 1.35 was the last release to support containerd 1
// (https://kubernetes.io/blog/2025/11/26/kubernetes-v1-35-sneak-peek/).
func oldestContainerd(kubelet *version.Version) string {
	if kubelet.Minor() < 34 {
		return ""
	}
	return "2.0"
}

// newestContainerd is the first major version of containerd without known compatibility.
const newestContainerd = 3

// SupportedContainerd describes the versions of containerd that work with a kubelet of the given version. It returns ""
// if they are not known.
func SupportedContainerd(kubelet string) string {
	k, err := version.ParseSemantic(kubelet)
	if err != nil || oldestContainerd(k) == "" {
		return ""
	}
	return fmt.Sprintf("%s and newer, before %d, with kubelet %s", oldestContainerd(k), newestContainerd, kubelet)
}

// Containerd returns nil if a kubelet of the given version works with a containerd of the given version. Versions have
// no leading v.
func Containerd(kubelet, containerd string) error {
	c, err := version.ParseSemantic(containerd)
	if err != nil {
		return fmt.Errorf("containerd's version %q: %w", containerd, err)
	}
	k, err := version.ParseSemantic(kubelet)
	if err != nil {
		return fmt.Errorf("kubelet's version %q: %w", kubelet, err)
	}
	oldest := oldestContainerd(k)
	if oldest == "" || !c.AtLeast(version.MustParseGeneric(oldest)) || c.Major() >= newestContainerd {
		return fmt.Errorf("kubelet %s does not work with containerd %s", kubelet, containerd)
	}
	return nil
}
