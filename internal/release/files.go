package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"kubeone/internal/model/desired"
)

// Files are the library's bundles as hosts have them, each under a name that says what is in it: bundles with the same
// parts have the same name, wherever their files are. Hosts get a whole bundle: each of its parts must be vouched for
// as those that For returns, with the same errors.
func (l *Library) Files() ([]desired.BundleFile, error) {
	if err := l.checkAll(); err != nil {
		return nil, err
	}
	var out []desired.BundleFile
	for _, b := range l.bundles {
		name, err := b.fileName()
		if err != nil {
			return nil, err
		}
		info, err := b.file.Stat()
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.path, err)
		}
		out = append(out, desired.BundleFile{Name: name, Size: info.Size()})
	}
	return out, nil
}

// checkAll checks the digests of everything that the bundles have.
func (l *Library) checkAll() error {
	check := l.claims
	for _, b := range l.bundles {
		claims, err := b.claims()
		if err != nil {
			return err
		}
		for _, c := range claims {
			if _, err := check.check(c, false); err != nil {
				return err
			}
		}
	}
	return check.doubts()
}

// claims are what the bundle says of its parts. A binary that this program does not install has no name in lists. The
// error is an *UnsupportedError for a bundle of a release that this program does not install.
func (b *Bundle) claims() ([]Claim, error) {
	has := b.index.Artifacts
	want := Want{KubernetesVersion: has.KubernetesVersion, Arch: has.Arch, CNI: b.index.CNI, KubeProxy: true}
	versions, err := want.versions()
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", b.path, err)
	}
	source := "bundle " + b.path
	files := want.files(versions)
	var out []Claim
	for _, have := range has.Binaries {
		c := Claim{What: have.Name + " " + have.Version, SHA256: have.SHA256, Source: source}
		if n := slices.IndexFunc(files, func(f file) bool { return f.name == have.Name }); n >= 0 {
			c = files[n].at(have.Version).claim(have.SHA256, source)
		}
		out = append(out, c)
	}
	for _, have := range has.Images {
		out = append(out, imageClaim(have.Name, has.Arch, have.Digest, source))
	}
	return out, nil
}

// File is the whole of the bundle that has that name.
func (l *Library) File(name string) (content *io.SectionReader, ok bool) {
	for _, b := range l.bundles {
		has, err := b.fileName()
		if err != nil || has != name {
			continue
		}
		info, err := b.file.Stat()
		if err != nil {
			return nil, false
		}
		return io.NewSectionReader(b.file, 0, info.Size()), true
	}
	return nil, false
}

// fileName is made of the index, which has the digests of all parts.
func (b *Bundle) fileName() (string, error) {
	index, err := json.Marshal(b.index)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(index)
	digest := hex.EncodeToString(sum[:6])
	return fmt.Sprintf("kubeone-%s-%s-%s.tar", b.index.KubernetesVersion, b.index.Arch, digest), nil
}
