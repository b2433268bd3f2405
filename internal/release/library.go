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

// Library is a set of open bundles. It finds each part of a release independently, in any bundle that contains it. It
// is safe for concurrent use.
type Library struct {
	bundles []*Bundle
	claims  claimCheck // initial state of each check
}

// LibraryOptions say how to confirm the content of bundles. The zero value accepts any content.
type LibraryOptions struct {
	// Known holds digests that the parts must have. They take precedence over the digests in a bundle.
	Known Digests
	// SHA256 lists the digests (hex) of the bundle files, in any order; an empty list accepts any file. Each bundle must
	// have one of these digests, and each digest must match a bundle. The files are checked before they are used in any
	// other way.
	SHA256 []string
	// Strict refuses parts without a known digest, unless SHA256 confirms the bundles.
	Strict bool
}

// OpenLibrary opens bundles, each like Open. The caller must close the library. The error is a *ConflictError if two
// bundles contain different files with the same name and version, because the result must not depend on the order of
// the bundles. It is a *BundleSumError if a bundle matches none of the given digests, or a digest matches no bundle.
func OpenLibrary(ctx context.Context, o LibraryOptions, paths ...string) (*Library, error) {
	given, err := newSums(o.SHA256)
	if err != nil {
		return nil, err
	}
	l := &Library{claims: claimCheck{
		known: o.Known, trusted: !o.Strict || len(o.SHA256) > 0, untrusted: UntrustedError{Bundles: true},
	}}
	for _, path := range paths {
		b, err := openWithCheck(path, func(b *Bundle) error { return given.checkFile(ctx, b) })
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

// Close closes the bundles. Blobs can no longer be read.
func (l *Library) Close() error {
	var all error
	for _, b := range l.bundles {
		all = errors.Join(all, b.Close())
	}
	return all
}

// Indexes returns the indexes of the bundles, in the order in which they were opened. The caller must not change them,
// because they are shared.
func (l *Library) Indexes() []Index {
	out := make([]Index, 0, len(l.bundles))
	for _, b := range l.bundles {
		out = append(out, b.index)
	}
	return out
}

// Verify reads every part that Blob can return, once, and compares it with its digest. The errors are those of
// Bundle.Verify.
func (l *Library) Verify(ctx context.Context) error {
	for _, b := range l.bundles {
		if err := b.verifyEntries(ctx, func(e Entry) bool { return l.bundleWith(e.SHA256) == b }); err != nil {
			return err
		}
	}
	return nil
}

// bundleWith returns the first bundle that contains the part, or nil.
func (l *Library) bundleWith(sum string) *Bundle {
	i := slices.IndexFunc(l.bundles, func(b *Bundle) bool { _, ok := b.offsets[sum]; return ok })
	if i < 0 {
		return nil
	}
	return l.bundles[i]
}

// Blob is like Bundle.Blob, and searches all bundles.
func (l *Library) Blob(digest string) (*io.SectionReader, bool) {
	b := l.bundleWith(strings.TrimPrefix(digest, digestPrefix))
	if b == nil {
		return nil, false
	}
	return b.Blob(digest)
}

// findConflict returns a *ConflictError if two bundles contain different files with the same name, version and
// architecture.
func (l *Library) findConflict() error {
	type known struct{ digest, path string }
	seen := map[string]known{}
	for _, b := range l.bundles {
		for _, part := range b.index.listParts() {
			if earlier, ok := seen[part.what]; ok && earlier.digest != part.digest {
				return &ConflictError{
					What: part.what, Paths: [2]string{earlier.path, b.path}, Digests: [2]string{earlier.digest, part.digest},
				}
			}
			seen[part.what] = known{part.digest, b.path}
		}
	}
	return nil
}

// part is a part of a bundle: what describes it with its version and architecture.
type part struct{ what, digest string }

func (i Index) listParts() []part {
	platform := " for linux/" + i.Arch
	var out []part
	for _, f := range i.Artifacts.Binaries {
		out = append(out, part{f.Name + " " + f.Version + platform, f.SHA256})
	}
	for _, p := range i.Artifacts.Published {
		out = append(out, part{p.Name + " " + p.Version + platform, p.SHA256})
	}
	for _, c := range i.Artifacts.Charts {
		out = append(out, part{describeChart(c), c.SHA256})
	}
	for _, image := range i.Artifacts.Images {
		out = append(out, part{"image " + image.Name + platform, strings.TrimPrefix(image.Digest, digestPrefix)})
	}
	return out
}

// For returns the parts of the desired release, each from any bundle that contains it. It leaves out network plugins
// and kube-proxy if they are not desired. Images have the names that the cluster uses, which depend on
// Want.OverwriteRegistry and Want.DNSRepository. Images of workloads have their own names, and all of them are
// returned.
//
// Some parts must have an exact version: those whose version is set in Want, and those whose version follows from the
// Kubernetes version (kubeadm, the control-plane images). For other parts (runc, etcd, CoreDNS, …), a bundle for the
// desired Kubernetes version determines the version. If no such bundle contains the part, it must have the version that
// this program would choose.
//
// The version, digest, sizes and blobs of a part come from the bundle. This program determines its location, whether it
// is an archive, and which hosts need it.
//
// The error is an *UnsupportedError for a release that this program does not install, a *MissingError that lists all
// parts that are in no bundle, a *MismatchError if the digest of a part differs from the known one, or an
// *UntrustedError if parts without a known digest are refused.
func (l *Library) For(want Want) (desired.Artifacts, error) {
	versions, err := want.matchingVersions()
	if err != nil {
		return desired.Artifacts{}, err
	}
	shelf, claims := l.searchOrderFor(want), l.claims
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
			err = claims.checkClaim(f.atVersion(have.Version).newClaim(have.SHA256, l.describeSource(have.SHA256)), false)
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
		claim := newImageClaim(have.Name, want.Arch, have.Digest, l.describeSource(have.Digest))
		img.Known, err = claims.checkClaim(claim, false)
		if err != nil {
			return desired.Artifacts{}, err
		}
		out.Images = append(out.Images, img)
	}
	if len(missing) > 0 {
		return desired.Artifacts{}, l.missingError(want, missing)
	}
	if out.Images, err = l.addWorkloads(out.Images, want.Arch, &claims); err != nil {
		return desired.Artifacts{}, err
	}
	if err := claims.untrustedError(); err != nil {
		return desired.Artifacts{}, err
	}
	return out, nil
}

// fromBundle returns the file with the digest and size from a bundle.
func (f file) fromBundle(have desired.Binary) desired.Binary {
	return desired.Binary{
		Name: f.name, Version: f.version, URL: Source{}.fileURL(f.host, f.path), SHA256: have.SHA256, Size: have.Size,
		Archive: f.archive,
	}
}

// imageFromBundle returns the image with the tag and content from a bundle, under the name that the cluster uses.
func (w Want) imageFromBundle(i image, have desired.Image) desired.Image {
	name := w.clusterName(have.Name)
	return desired.Image{
		Name: name, Source: name, Digest: have.Digest, Size: have.Size, Roles: i.roles, Blobs: have.Blobs,
	}
}

// describeSource returns the bundle that provides a part, for messages.
func (l *Library) describeSource(digest string) string {
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

// summarize describes the release in a bundle.
func (i Index) summarize() string {
	containerd, _ := i.Artifacts.Binary(desired.BinaryContainerd)
	out := fmt.Sprintf("Kubernetes %s and containerd %s for linux/%s, network plugin %s", i.KubernetesVersion,
		containerd.Version, i.Arch, i.CNI)
	if !i.KubeProxy {
		out += ", no kube-proxy"
	}
	return out
}

// renameHost replaces the host in an image name with another registry.
func renameHost(official, registry string) string {
	_, rest, _ := strings.Cut(official, "/")
	return strings.Trim(registry, "/") + "/" + rest
}
