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

// Versions holds the versions that go with a Kubernetes minor version, as the projects tag them; those of binaries
// without the leading v. Network plugins define their own.
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

// versionTable is the only place with these versions, by minor version of Kubernetes 1.
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
	versions, ok := versionTable()[v.Minor()]
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

// Digests holds sha256 digests of official artifacts that were confirmed by someone other than the artifact's source.
// They must match, whatever mirror or bundle an artifact comes from. The zero value knows none. Digests never change,
// and are safe for concurrent use.
//
// Their text is what sha256sum prints in the directory of a mirror: a digest, two spaces, and the official location as
// HOST/PATH. For an image it is the name with tag and platform, and the digest of its manifest for that platform. Empty
// lines, and lines that begin with #, are ignored.
//
//	<64 digits>  dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet
//	<64 digits>  registry.k8s.io/pause:3.10.2 linux/amd64
type Digests struct {
	known map[string]knownDigest // by the name in lists
}

// knownDigest is a digest (hex), and the list that contains it.
type knownDigest struct{ sum, by string }

// Claim is a source's digest of an official artifact.
type Claim struct {
	What   string // for messages: "kubelet 1.36.3 for linux/amd64"
	Name   string // in lists of digests
	SHA256 string // hex
	Source string // who claims it: a mirror's host, a registry, a bundle's path
}

// Check compares a claim with the known digest, and reports whether there is one. The error is a *MismatchError if they
// differ.
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

// MaxDigests is the maximum length of a list of digests, in bytes. A line has about 150.
const MaxDigests = 4 << 20

// The names of lists: a file of an official host, and an image with its tag and platform.
var (
	fileName  = pattern.Lazy(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._+~-]+)+$`)
	imageName = pattern.Lazy(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9._-]+)+:[A-Za-z0-9._-]+ linux/[a-z0-9]+$`)
)

// ParseDigests reads a list of digests; by is its file name. A line that Digests does not describe is an error with its
// number, and so are two digests of one artifact.
func ParseDigests(text, by string) (Digests, error) {
	if len(text) > MaxDigests {
		return Digests{}, fmt.Errorf("%s has more than %d MiB, which is no list of digests", by, MaxDigests>>20)
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

// parseDigest reads one line.
func parseDigest(line string) (name, sum string, err error) {
	const length = 64
	if len(line) < length+2 || line[length:length+2] != "  " && line[length:length+2] != " *" {
		return "", "", fmt.Errorf("%.80q is no line of sha256sum: 64 hexadecimal digits, two spaces, and a name", line)
	}
	sum, name = strings.ToLower(line[:length]), strings.TrimPrefix(line[length+2:], "./")
	if !isSHA256(sum) {
		return "", "", fmt.Errorf("%q is not a sha256", line[:length])
	}
	if !fileName().MatchString(name) && !imageName().MatchString(name) {
		return "", "", fmt.Errorf("%.80q is no official location, such as "+
			"dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet or registry.k8s.io/pause:3.10.2 linux/amd64", name)
	}
	return name, sum, nil
}
