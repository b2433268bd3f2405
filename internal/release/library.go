package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
)

// Library is several open bundles in which every component of a host is found by itself, in whichever has it. Its
// methods may be called by several goroutines at the same time.
type Library struct {
	bundles []*Bundle
	claims  claimCheck // as every check of claims begins
}

// LibraryOptions say who vouches for bundles. The zero value is nobody.
type LibraryOptions struct {
	// Known are the digests that must match, whatever a bundle says.
	Known Digests
	// SHA256 are the digests (hex) of the bundles' whole files, in any order; empty for any file. Every bundle must
	// have one of them, and every one must be a bundle's. The files are read for that before anything else is done
	// with them.
	SHA256 []string
	// Strict refuses parts whose digest is not known, unless SHA256 vouches for the bundles.
	Strict bool
}

// OpenLibrary opens bundles, as Open does each. The caller closes the library. Two bundles that hold different files
// under one name and version are a *ConflictError: which of them would be installed must not depend on their order. A
// bundle with another digest than one of those given, and a digest that is no bundle's, is a *BundleSumError.
func OpenLibrary(ctx context.Context, o LibraryOptions, paths ...string) (*Library, error) {
	given, err := newSums(o.SHA256)
	if err != nil {
		return nil, err
	}
	l := &Library{claims: claimCheck{
		known: o.Known, trusted: !o.Strict || len(o.SHA256) > 0, doubt: UntrustedError{Bundles: true},
	}}
	for _, path := range paths {
		b, err := open(path, func(b *Bundle) error { return given.checkFile(ctx, b) })
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.bundles = append(l.bundles, b)
	}
	if err := cmp.Or(given.unusedError(), l.findConflict()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close closes the bundles. Blobs that were handed out cannot be read any more.
func (l *Library) Close() error {
	var all error
	for _, b := range l.bundles {
		all = errors.Join(all, b.Close())
	}
	return all
}

// Indexes are the bundles' own descriptions, in the order in which they were opened. They are shared: the caller does
// not change them.
func (l *Library) Indexes() []Index {
	out := make([]Index, 0, len(l.bundles))
	for _, b := range l.bundles {
		out = append(out, b.index)
	}
	return out
}

// Verify reads everything that Blob returns, each part once, and compares it with its digest. Errors are those of
// Bundle.Verify.
func (l *Library) Verify(ctx context.Context) error {
	for _, b := range l.bundles {
		if err := b.verifyEntries(ctx, func(e Entry) bool { return l.bundleWith(e.SHA256) == b }); err != nil {
			return err
		}
	}
	return nil
}

// bundleWith is the bundle from which a part is taken: the first that has it.
func (l *Library) bundleWith(sum string) *Bundle {
	i := slices.IndexFunc(l.bundles, func(b *Bundle) bool { _, ok := b.offsets[sum]; return ok })
	if i < 0 {
		return nil
	}
	return l.bundles[i]
}

// Blob returns the content with a digest, from whichever bundle has it, as Bundle.Blob does.
func (l *Library) Blob(digest string) (*io.SectionReader, bool) {
	b := l.bundleWith(strings.TrimPrefix(digest, digestPrefix))
	if b == nil {
		return nil, false
	}
	return b.Blob(digest)
}

// findConflict finds two different files of one name and version for one architecture.
func (l *Library) findConflict() error {
	type known struct{ digest, path string }
	seen := map[string]known{}
	for _, b := range l.bundles {
		note := func(what, digest string) error {
			key := b.index.Arch + " " + what
			if before, ok := seen[key]; ok && before.digest != digest {
				return &ConflictError{
					What: what + " for linux/" + b.index.Arch, Paths: [2]string{before.path, b.path},
					Digests: [2]string{before.digest, digest},
				}
			}
			seen[key] = known{digest, b.path}
			return nil
		}
		for _, f := range b.index.Artifacts.Binaries {
			if err := note(f.Name+" "+f.Version, f.SHA256); err != nil {
				return err
			}
		}
		for _, i := range b.index.Artifacts.Images {
			if err := note("image "+i.Name, strings.TrimPrefix(i.Digest, digestPrefix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// For returns what hosts need of the wanted release, each part from whichever bundle has it: nothing for a network
// plugin or a kube-proxy that is not wanted, and images under the names that the cluster uses, which are those of
// Want.OverwriteRegistry and Want.DNSRepository if there are such.
//
// The version of a part that the wish names, or that follows from the version of Kubernetes (kubeadm, the control
// plane's images), is that and no other. The version of every other part (runc, etcd, CoreDNS, …) is the one that a
// bundle of that version of Kubernetes has, whatever this program would choose itself; if none has the part, the one
// that this program would choose.
//
// Of a part that a bundle has, its version, digest, sizes and blobs are the bundle's. Its location, whether it is an
// archive, and which hosts need it are what this program knows of that version.
//
// The error is an *UnsupportedError for a release that this program does not install, a *MissingError with all parts
// that no bundle has, a *MismatchError where a part has another digest than the known one, or an *UntrustedError where
// parts without a known digest are refused.
func (l *Library) For(want Want) (desired.Artifacts, error) {
	versions, err := want.matchingVersions()
	if err != nil {
		return desired.Artifacts{}, err
	}
	shelf, claims := l.shelfFor(want), l.claims
	out := desired.Artifacts{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, Pushed: true}
	var missing []string
	for _, f := range want.releaseFiles(versions) {
		have, ok := shelf.binaryFor(f)
		if !ok {
			if !f.optional {
				missing = append(missing, f.name+" "+f.version)
			}
			continue
		}
		binary := f.atVersion(have.Version).fromBundle(have)
		binary.Known,
			err = claims.checkClaim(f.atVersion(have.Version).sourceClaim(have.SHA256, l.pathOf(have.SHA256)), false)
		if err != nil {
			return desired.Artifacts{}, err
		}
		out.Binaries = append(out.Binaries, binary)
	}
	for _, i := range want.releaseImages(versions) {
		have, ok := shelf.imageFor(i)
		if !ok {
			missing = append(missing, "image "+i.officialName())
			continue
		}
		img := want.imageFromBundle(i, have)
		img.Known, err = claims.checkClaim(imageClaim(have.Name, want.Arch, have.Digest, l.pathOf(have.Digest)), false)
		if err != nil {
			return desired.Artifacts{}, err
		}
		out.Images = append(out.Images, img)
	}
	if len(missing) > 0 {
		return desired.Artifacts{}, l.missingError(want, missing)
	}
	if err := claims.untrustedError(); err != nil {
		return desired.Artifacts{}, err
	}
	return out, nil
}

// fromBundle is the file, of the version that it is at, with the content that a bundle has.
func (f file) fromBundle(have desired.Binary) desired.Binary {
	return desired.Binary{
		Name: f.name, Version: f.version, URL: Source{}.urlOf(f.host, f.path), SHA256: have.SHA256, Size: have.Size,
		Archive: f.archive,
	}
}

// imageFromBundle is the image, under the name that the cluster uses, with the tag and the content that a bundle has.
func (w Want) imageFromBundle(i image, have desired.Image) desired.Image {
	name := w.clusterName(have.Name)
	return desired.Image{
		Name: name, Source: name, Digest: have.Digest, Size: have.Size, Roles: i.roles, Blobs: have.Blobs,
	}
}

// pathOf is the bundle from which a part is taken.
func (l *Library) pathOf(digest string) string {
	if b := l.bundleWith(strings.TrimPrefix(digest, digestPrefix)); b != nil {
		return "bundle " + b.path
	}
	return "no bundle"
}

func (l *Library) missingError(want Want, parts []string) error {
	err := &MissingError{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, Parts: parts}
	for _, b := range l.bundles {
		err.Bundles = append(err.Bundles, b.path+" has "+b.index.summarize())
	}
	return err
}

// summarize says which release a bundle is of.
func (i Index) summarize() string {
	containerd, _ := i.Artifacts.Binary(desired.BinaryContainerd)
	out := fmt.Sprintf("Kubernetes %s and containerd %s for linux/%s, network plugin %s", i.KubernetesVersion,
		containerd.Version, i.Arch, i.CNI)
	if !i.KubeProxy {
		out += ", no kube-proxy"
	}
	return out
}

// renameHost puts another registry in place of an official name's host.
func renameHost(official, registry string) string {
	_, rest, _ := strings.Cut(official, "/")
	return strings.Trim(registry, "/") + "/" + rest
}
