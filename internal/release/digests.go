package release

import (
	"fmt"
	"strings"

	"kubeone/internal/text/pattern"
)

// Digests are the sha256 digests of official artifacts for which somebody vouches other than the place from which an
// artifact is fetched. What they know must match, whatever mirror or bundle it comes from. The zero value knows none.
// They are not changed after they were made, and may be used by several goroutines at the same time.
//
// Their text is what sha256sum prints in the folder of a mirror: a digest, two spaces, and the official location as
// HOST/PATH. An image stands there with its tag and its platform, and the digest of its manifest for that platform.
// Empty lines, and those that begin with #, say nothing.
//
//	<64 digits>  dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet
//	<64 digits>  registry.k8s.io/pause:3.10.2 linux/amd64
type Digests struct {
	known map[string]knownDigest // by the name in lists
}

// knownDigest is a digest (hex), and who vouches for it.
type knownDigest struct{ sum, by string }

// Claim is what a source says of an official artifact.
type Claim struct {
	What   string // for a person: "kubelet 1.36.3 for linux/amd64"
	Name   string // in lists of digests
	SHA256 string // hex
	Source string // who says so: the host of a mirror, a registry, the path of a bundle
}

// Check compares a claim with the digest that is known. It reports whether one is; the error is a *MismatchError where
// the claim is another.
func (d Digests) Check(c Claim) (known bool, err error) {
	want, known := d.known[c.Name]
	if known && want.sum != c.SHA256 {
		return true, &MismatchError{Claim: c, Known: want.sum, By: want.by}
	}
	return known, nil
}

func (d *Digests) add(name string, k knownDigest) error {
	if before, ok := d.known[name]; ok && before.sum != k.sum {
		return fmt.Errorf("%s vouches for sha256 %s of %s, and %s for %s: they cannot both be right", k.by, k.sum, name,
			before.by, before.sum)
	}
	if d.known == nil {
		d.known = map[string]knownDigest{}
	}
	d.known[name] = k
	return nil
}

// MaxDigests is how long the text of digests may be, in bytes. A line has about 150.
const MaxDigests = 4 << 20

// The names of lists: a file of an official host, and an image with its tag and platform.
var (
	fileName  = pattern.Lazy(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._+~-]+)+$`)
	imageName = pattern.Lazy(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9._-]+)+:[A-Za-z0-9._-]+ linux/[a-z0-9]+$`)
)

// ParseDigests reads the text of digests; by is who vouches for them: the name of a file. Any line that is not just
// what Digests describes is an error with its number, and so are two digests of one artifact.
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
			err = out.add(name, knownDigest{sum, by})
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
