package release

import (
	"cmp"
	"fmt"
	"k8s.io/apimachinery/pkg/util/version"
	"kubeone/internal/decide/skew"
	"kubeone/internal/text/pattern"
	"slices"
	"strings"
)

// Versions holds the versions that belong to a Kubernetes minor version, as the projects tag them. Versions of binaries
// have no leading v. Network plugins define their own versions.
type Versions struct {
	Containerd string
	Runc       string
	CNIPlugins string
	Crictl     string

	// The tags of images. Etcd, CoreDNS and Pause are the kubeadm defaults for the minor version (constants.go in
	// cmd/kubeadm/app/constants: DefaultEtcdVersion or SupportedEtcdVersion, CoreDNSVersion, PauseVersion).
	Etcd    string
	CoreDNS string
	Pause   string
}

// versionTable returns the versions for each minor version of Kubernetes 1. No other place defines them.
func versionTable() map[uint]Versions {
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
	for minor := range versionTable() {
		out = append(out, fmt.Sprintf("1.%d", minor))
	}
	slices.Sort(out)
	return out
}

// Architectures lists the supported CPU architectures, as Go names them.
func Architectures() []string { return []string{"amd64", "arm64"} }

// VersionsFor returns the versions for a Kubernetes version ("1.36.3", without v). The error is an *UnsupportedError if
// the version is not a semantic version, has build metadata, is surrounded by spaces, or has an unsupported minor
// version.
func VersionsFor(kubernetesVersion string) (Versions, error) {
	unsupported := &UnsupportedError{What: "Kubernetes version", Value: kubernetesVersion, Supported: Supported()}
	v, err := version.ParseSemantic(kubernetesVersion)
	if err != nil || !partVersion().MatchString(kubernetesVersion) || v.Major() != 1 {
		return Versions{}, unsupported
	}
	versions, ok := versionTable()[v.Minor()]
	if !ok {
		return Versions{}, unsupported
	}
	return versions, nil
}

// CheckContainerd returns an *UnsupportedError if a kubelet version ("1.36.3") does not work with a containerd version
// ("2.4.2").
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

// matchingVersions returns the versions of everything in the release. The error is an *UnsupportedError if this program
// does not install the release.
func (w Want) matchingVersions() (Versions, error) {
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

// Digests holds SHA-256 digests of official artifacts, confirmed independently of the source of the artifact. An
// artifact must have its known digest, whether it comes from a mirror or a bundle. The zero value contains no digests.
// A Digests is immutable and safe for concurrent use.
//
// The text form is the output of sha256sum in the directory of a mirror: a digest, two spaces, and the official
// location as HOST/PATH. For an image, the location is its name with tag and platform, and the digest is that of its
// manifest for the platform. Empty lines and lines that begin with # are ignored.
//
//	<64 digits>  dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet
//	<64 digits>  registry.k8s.io/pause:3.10.2 linux/amd64
type Digests struct {
	known map[string]knownDigest // by the name in lists
}

// knownDigest is a digest (hex) and the list that contains it.
type knownDigest struct{ sum, by string }

// Claim is a digest that a source reports for an official artifact.
type Claim struct {
	What   string // for messages: "kubelet 1.36.3 for linux/amd64"
	Name   string // in lists of digests
	SHA256 string // hex
	Source string // mirror host, registry, or "bundle" and its path
}

// Check reports whether there is a known digest for the claim. The error is a *MismatchError if the digests differ.
func (d Digests) Check(c Claim) (known bool, err error) {
	want, known := d.known[c.Name]
	if known && want.sum != c.SHA256 {
		return true, &MismatchError{Claim: c, Known: want.sum, By: want.by}
	}
	return known, nil
}

func (d *Digests) addDigest(name string, k knownDigest) error {
	if before, ok := d.known[name]; ok && before.sum != k.sum {
		return fmt.Errorf("%s has sha256 %s for %s, but %s has %s: remove the wrong one", k.by, k.sum, name,
			before.by, before.sum)
	}
	if d.known == nil {
		d.known = map[string]knownDigest{}
	}
	d.known[name] = k
	return nil
}

// MaxDigests is the maximum size of a list of digests in bytes. A line has about 150 bytes.
const MaxDigests = 4 << 20

// The valid names in lists of digests: a file on an official host, and an image with its tag or digest, and its
// platform.
var (
	fileName  = pattern.Lazy(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._+~-]+)+$`)
	imageName = pattern.Lazy(`^([a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)+(:[0-9]+)?|[a-z0-9][a-z0-9-]*:[0-9]+|localhost)` +
		`(/[a-z0-9][a-z0-9._-]*)+(:[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64}) linux/[a-z0-9]+$`)
)

// ParseDigests parses a list of digests. The argument by is its file name, for messages. An invalid line is an error
// that includes the line number; so are two different digests for the same artifact.
func ParseDigests(text, by string) (Digests, error) {
	if len(text) > MaxDigests {
		return Digests{}, fmt.Errorf("%s is larger than %d MiB, so it is not a list of digests", by, MaxDigests>>20)
	}
	var out Digests
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, sum, err := parseDigest(line)
		if err == nil {
			err = out.addDigest(name, knownDigest{sum, by})
		}
		if err != nil {
			return Digests{}, fmt.Errorf("%s, line %d: %w", by, n+1, err)
		}
	}
	return out, nil
}

// parseDigest parses one line of a list.
func parseDigest(line string) (name, sum string, err error) {
	const length = 64
	if len(line) < length+2 || line[length:length+2] != "  " && line[length:length+2] != " *" {
		return "", "", fmt.Errorf("%.80q is not a line as printed by sha256sum: "+
			"64 hexadecimal digits, two spaces, and a name", line)
	}
	sum, name = strings.ToLower(line[:length]), strings.TrimPrefix(line[length+2:], "./")
	if !isSHA256(sum) {
		return "", "", fmt.Errorf("%q is not a sha256", line[:length])
	}
	if !fileName().MatchString(name) && !imageName().MatchString(name) {
		return "", "", fmt.Errorf("%.80q is not an official location, such as "+
			"dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet or registry.k8s.io/pause:3.10.2 linux/amd64", name)
	}
	return name, sum, nil
}
