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

// Library is a set of open bundles. Each part is found independently, in any bundle that has it. It is safe for
// concurrent use.
type Library struct {
	bundles []*Bundle
	claims  claimCheck // initial state of every check of claims
}

// LibraryOptions say how to confirm bundles. The zero value confirms nothing.
type LibraryOptions struct {
	// Known holds digests that must match, whatever a bundle says.
	Known Digests
	// SHA256 lists the digests (hex) of the bundles' whole files, in any order; empty accepts any file. Every bundle
	// must have one of them, and every one must match a bundle. The files are checked before any other use.
	SHA256 []string
	// Strict refuses parts without a known digest, unless SHA256 confirms the bundles.
	Strict bool
}

// OpenLibrary opens bundles, each as Open does. The caller closes the library. Two bundles with different files under
// one name and version are a *ConflictError: the result must not depend on their order. A bundle without a digest in
// SHA256, and a digest without a bundle, is a *BundleSumError.
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

// Close closes the bundles. Blobs cannot be read any more.
func (l *Library) Close() error {
	var all error
	for _, b := range l.bundles {
		all = errors.Join(all, b.Close())
	}
	return all
}

// Indexes returns the bundles' own descriptions, in the order in which they were opened. They are shared: the caller
// must not change them.
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

// bundleWith returns the first bundle that has the part.
func (l *Library) bundleWith(sum string) *Bundle {
	i := slices.IndexFunc(l.bundles, func(b *Bundle) bool { _, ok := b.offsets[sum]; return ok })
	if i < 0 {
		return nil
	}
	return l.bundles[i]
}

// Blob returns the content with a digest, like Bundle.Blob, from any bundle that has it.
func (l *Library) Blob(digest string) (*io.SectionReader, bool) {
	b := l.bundleWith(strings.TrimPrefix(digest, digestPrefix))
	if b == nil {
		return nil, false
	}
	return b.Blob(digest)
}

// findConflict finds two different files with one name and version for one architecture.
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

// For returns what hosts need of the desired release, each part from any bundle that has it. It leaves out an undesired
// network plugin or kube-proxy, and returns images under the names that the cluster uses, including
// Want.OverwriteRegistry and Want.DNSRepository.
//
// A part whose version Want sets, or that follows from the version of Kubernetes (kubeadm, the control plane's images),
// has exactly that version. Any other part (runc, etcd, CoreDNS, …) has the version in a bundle of that version of
// Kubernetes; if none has the part, the version that this program would choose.
//
// A part's version, digest, sizes and blobs come from the bundle. Its location, whether it is an archive, and which
// hosts need it come from this program.
//
// The error is an *UnsupportedError for a release that this program does not install, a *MissingError with all parts
// that no bundle has, a *MismatchError if a part's digest differs from the known one, or an *UntrustedError if parts
// without a known digest are refused.
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

// fromBundle returns the file, at its version, with the content from a bundle.
func (f file) fromBundle(have desired.Binary) desired.Binary {
	return desired.Binary{
		Name: f.name, Version: f.version, URL: Source{}.urlOf(f.host, f.path), SHA256: have.SHA256, Size: have.Size,
		Archive: f.archive,
	}
}

// imageFromBundle returns the image, under the cluster's name for it, with tag and content from a bundle.
func (w Want) imageFromBundle(i image, have desired.Image) desired.Image {
	name := w.clusterName(have.Name)
	return desired.Image{
		Name: name, Source: name, Digest: have.Digest, Size: have.Size, Roles: i.roles, Blobs: have.Blobs,
	}
}

// pathOf returns the path of the bundle that provides a part.
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

// summarize describes the release of a bundle.
func (i Index) summarize() string {
	containerd, _ := i.Artifacts.Binary(desired.BinaryContainerd)
	out := fmt.Sprintf("Kubernetes %s and containerd %s for linux/%s, network plugin %s", i.KubernetesVersion,
		containerd.Version, i.Arch, i.CNI)
	if !i.KubeProxy {
		out += ", no kube-proxy"
	}
	return out
}

// renameHost replaces the host of an official name with another registry.
func renameHost(official, registry string) string {
	_, rest, _ := strings.Cut(official, "/")
	return strings.Trim(registry, "/") + "/" + rest
}
