// Package skew implements Kubernetes' version skew policy: which kubelet works with which API server and container
// runtime, and through which versions an upgrade goes.
package skew

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// maxKubeletSkew is how many minors a kubelet may be older than an API server (Kubernetes' version skew policy).
const maxKubeletSkew = 3

// Check returns nil if a kubelet of the given version may connect to an API server of the given version: it is not
// newer, and at most three minor versions older. Patch releases do not count within a minor version.
func Check(apiserver, kubelet string) error {
	a, err := version.ParseSemantic(apiserver)
	if err != nil {
		return fmt.Errorf("API server's version %q: %w", apiserver, err)
	}
	k, err := version.ParseSemantic(kubelet)
	if err != nil {
		return fmt.Errorf("kubelet's version %q: %w", kubelet, err)
	}
	switch {
	case a.Major() != k.Major():
		return fmt.Errorf("kubelet %s and API server %s differ in the major version", kubelet, apiserver)
	case k.Minor() > a.Minor():
		return fmt.Errorf("kubelet %s is newer than API server %s", kubelet, apiserver)
	case a.Minor()-k.Minor() > maxKubeletSkew:
		return fmt.Errorf("kubelet %s is more than %d minors older than API server %s", kubelet, maxKubeletSkew,
			apiserver)
	}
	return nil
}

// Newer reports whether version a is newer than b, including patch releases. An invalid version is not newer.
func Newer(a, b string) bool {
	x, errX := version.ParseSemantic(a)
	y, errY := version.ParseSemantic(b)
	return errX == nil && errY == nil && y.LessThan(x)
}

// UpgradePath returns the versions of an upgrade from one version to another, including the last. A minor on the way is
// written as "1.35", because any patch release of it will do. It is empty for equal versions. A downgrade, or another
// major version, is an error.
func UpgradePath(from, to string) ([]string, error) {
	f, err := version.ParseSemantic(from)
	if err != nil {
		return nil, fmt.Errorf("running version %q: %w", from, err)
	}
	t, err := version.ParseSemantic(to)
	if err != nil {
		return nil, fmt.Errorf("desired version %q: %w", to, err)
	}
	switch {
	case t.LessThan(f):
		return nil, fmt.Errorf("%s is lower than %s: Kubernetes cannot be downgraded", to, from)
	case t.Major() != f.Major():
		return nil, fmt.Errorf("%s and %s differ in the major version", from, to)
	case t.EqualTo(f):
		return nil, nil
	}
	var path []string
	for minor := f.Minor() + 1; minor < t.Minor(); minor++ {
		path = append(path, fmt.Sprintf("%d.%d", t.Major(), minor))
	}
	return append(path, to), nil
}
