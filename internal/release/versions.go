package release

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/decide/skew"
)

// Versions are the versions of everything that goes with a Kubernetes minor version, as the projects tag them, without
// the leading v where they are versions of binaries. A network plugin says its own.
type Versions struct {
	Containerd string
	Runc       string
	CNIPlugins string
	Crictl     string

	// Tags of images. Etcd, CoreDNS and Pause are kubeadm's defaults of the minor version (constants.go in
	// cmd/kubeadm/app/constants: DefaultEtcdVersion or SupportedEtcdVersion, CoreDNSVersion, PauseVersion).
	Etcd    string
	CoreDNS string
	Pause   string
}

// table is the only place where these versions are written, by minor version of Kubernetes 1.
func table() map[uint]Versions {
	common := Versions{Runc: "1.5.2", CNIPlugins: "1.9.1"}
	row := func(containerd, crictl, etcd, coreDNS, pause string) Versions {
		v := common
		v.Containerd, v.Crictl, v.Etcd, v.CoreDNS, v.Pause = containerd, crictl, etcd, coreDNS, pause
		return v
	}
	return map[uint]Versions{
		34: row("2.3.7", "1.34.0", "3.6.5-0", "v1.12.1", "3.10.1"),
		35: row("2.3.7", "1.35.0", "3.6.6-0", "v1.13.1", "3.10.1"),
		36: row("2.4.2", "1.36.0", "3.6.8-0", "v1.14.2", "3.10.2"),
		37: row("2.4.2", "1.37.0", "3.7.0-0", "v1.14.6", "3.10.2"),
	}
}

// Supported lists the Kubernetes minor versions that this program installs, oldest first: "1.34".
func Supported() []string {
	var out []string
	for minor := range table() {
		out = append(out, fmt.Sprintf("1.%d", minor))
	}
	slices.Sort(out)
	return out
}

// Architectures lists the architectures that this program installs on, as Go names them.
func Architectures() []string { return []string{"amd64", "arm64"} }

// VersionsFor returns the versions that go with a Kubernetes version ("1.36.3", without v). The error is an
// *UnsupportedError for a version that is not semantic, has build metadata or blanks around it, or whose minor is not
// supported.
func VersionsFor(kubernetesVersion string) (Versions, error) {
	unsupported := &UnsupportedError{What: "Kubernetes version", Value: kubernetesVersion, Supported: Supported()}
	v, err := version.ParseSemantic(kubernetesVersion)
	if err != nil || !partVersion().MatchString(kubernetesVersion) || v.Major() != 1 {
		return Versions{}, unsupported
	}
	versions, ok := table()[v.Minor()]
	if !ok {
		return Versions{}, unsupported
	}
	return versions, nil
}

// CheckContainerd reports whether kubelets of a version ("1.36.3") work with a version of containerd ("2.4.2"); the
// error is an *UnsupportedError.
func CheckContainerd(kubelet, containerd string) error {
	if _, err := VersionsFor(kubelet); err != nil {
		return err
	}
	if partVersion().MatchString(containerd) && skew.Containerd(kubelet, containerd) == nil {
		return nil
	}
	return &UnsupportedError{
		What: "containerd version", Value: containerd, Supported: []string{skew.SupportedContainerd(kubelet)},
	}
}

// versions are those of everything that goes with the release; the error is an *UnsupportedError where this program
// does not install such a release.
func (w Want) versions() (Versions, error) {
	v, err := VersionsFor(w.KubernetesVersion)
	if err != nil {
		return Versions{}, err
	}
	if !slices.Contains(Architectures(), w.Arch) {
		return Versions{}, &UnsupportedError{What: "architecture", Value: w.Arch, Supported: Architectures()}
	}
	kubelet := cmp.Or(w.Kubelet, w.KubernetesVersion)
	if _, err := VersionsFor(kubelet); err != nil {
		return Versions{}, err
	}
	v.Containerd = cmp.Or(w.Containerd, v.Containerd)
	if err := CheckContainerd(kubelet, v.Containerd); err != nil {
		return Versions{}, err
	}
	return v, nil
}
