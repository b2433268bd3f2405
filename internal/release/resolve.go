package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"kubeone/internal/model/desired"
)

// Resolve fetches the digests of all files and images in the desired release, in parallel. Hosts then download from the
// same source. Optional files (crictl) are left out if the source responds that they do not exist. Published manifests
// are left out, because hosts do not need them; FetchPublished returns them.
//
// The error is an *UnsupportedError for a release that this program does not install, a *MirrorError for an unusable
// mirror, ctx's error if ctx ended, a *FetchError that lists every part that could not be fetched, a *MismatchError if
// a digest from the source differs from a known one, or an *UntrustedError if only the source itself confirms a digest.
func Resolve(ctx context.Context, src Source, want Want) (desired.Artifacts, error) {
	r, err := newResolver(src, want)
	if err != nil {
		return desired.Artifacts{}, err
	}
	r.published = nil
	out := desired.Artifacts{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch}
	binaries := make([]*desired.Binary, len(r.files))
	images := make([]desired.Image, len(r.images))
	err = r.forEach(ctx,
		func(ctx context.Context, n int) (err error) {
			binaries[n], err = r.resolveBinary(ctx, r.files[n])
			return err
		},
		func(ctx context.Context, n int) (err error) {
			images[n], err = r.resolveImage(ctx, r.images[n])
			return err
		})
	if err == nil {
		err = r.checkClaims(binaries, images)
	}
	if err != nil {
		return desired.Artifacts{}, err
	}
	for _, b := range binaries {
		if b != nil {
			out.Binaries = append(out.Binaries, *b)
		}
	}
	out.Images = images
	return out, nil
}

// checkClaims compares the digests that the source returned with the known ones, and sets Known on each part with a
// known digest.
func (r *resolver) checkClaims(binaries []*desired.Binary, images []desired.Image) (err error) {
	claims := claimCheck{known: r.src.Known, trusted: r.src.Trusted}
	for n, b := range binaries {
		if b == nil {
			continue
		}
		if b.Known, err = claims.checkClaim(r.newFileClaim(r.files[n], b.SHA256), r.src.isOfficial()); err != nil {
			return err
		}
	}
	for n, i := range r.images {
		if images[n].Known,
			err = claims.checkClaim(r.newImageClaim(i, images[n].Digest), !r.want.usesOtherRegistry(i)); err != nil {
			return err
		}
	}
	if err := r.checkPublished(&claims); err != nil {
		return err
	}
	return claims.untrustedError()
}

// newFileClaim returns the claim of the source about a file.
func (r *resolver) newFileClaim(f file, sum string) Claim {
	return f.newClaim(sum, r.src.hostFor(f.host))
}

// newImageClaim returns the claim of the registry about an image.
func (r *resolver) newImageClaim(i image, digest string) Claim {
	registry, _, _ := strings.Cut(r.want.imageLocation(i), "/")
	return newImageClaim(i.officialName(), r.want.Arch, digest, registry)
}

// resolver finds the digests of one release in one source.
type resolver struct {
	src        Source
	want       Want
	files      []file
	images     []image
	workloads  map[string]bool // official names of images that pods use
	charts     []Chart
	published  []file                      // manifests
	found      []desired.PublishedManifest // their content, after forEach
	fetcher    httpFetcher
	registries *registries
	cache      cache
}

func newResolver(src Source, want Want) (*resolver, error) {
	versions, err := want.matchingVersions()
	if err := errors.Join(err, src.validate()); err != nil {
		return nil, err
	}
	regs, err := newRegistries(src, want)
	if err != nil {
		return nil, err
	}
	return &resolver{
		src: src, want: want, files: want.releaseFiles(versions), images: want.releaseImages(versions),
		published: want.publishedFiles(),
		fetcher:   src.newFetcher(), registries: regs, cache: cache{dir: src.CacheDir},
	}, nil
}

// forEach finds the published manifests, and calls perFile and perImage with every index, in parallel. The error is
// ctx's if it ended, or a *FetchError with all failures.
func (r *resolver) forEach(ctx context.Context, perFile, perImage func(context.Context, int) error) error {
	failures := make([]Failure, len(r.files)+len(r.images)+len(r.published))
	r.found = make([]desired.PublishedManifest, len(r.published))
	var group sync.WaitGroup
	for n, f := range r.published {
		group.Go(func() {
			var err error
			r.found[n], err = r.resolvePublished(ctx, f)
			failures[len(r.files)+len(r.images)+n] = Failure{
				Part: f.name + " " + f.version, Host: r.src.hostFor(f.host), Err: err,
			}
		})
	}
	for n, f := range r.files {
		group.Go(func() {
			failures[n] = Failure{Part: f.name + " " + f.version, Host: r.src.hostFor(f.host), Err: perFile(ctx, n)}
		})
	}
	for n, i := range r.images {
		group.Go(func() {
			host, part, _ := strings.Cut(r.want.imageLocation(i), "/")
			failures[len(r.files)+n] = Failure{Part: "image " + part, Host: host, Err: perImage(ctx, n)}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("fetch the parts of Kubernetes %s: %w", r.want.KubernetesVersion, context.Cause(ctx))
	}
	out := &FetchError{KubernetesVersion: r.want.KubernetesVersion, Arch: r.want.Arch}
	for _, f := range failures {
		if f.Err != nil {
			out.Failures = append(out.Failures, f)
		}
	}
	if len(out.Failures) > 0 {
		return out
	}
	return nil
}

// cacheLifetime returns how long cached digests are valid; 0 means indefinitely.
func cacheLifetime(official bool) time.Duration {
	if official {
		return 0
	}
	return mirrorLifetime
}

// resolveBinary finds the digest of a file, in the cache or at the source. It returns nil for an optional file that
// does not exist there. It caches only trusted answers, under a key that includes how they were fetched.
func (r *resolver) resolveBinary(ctx context.Context, f file) (*desired.Binary, error) {
	out := &desired.Binary{Name: f.name, Version: f.version, URL: r.src.fileURL(f.host, f.path), Archive: f.archive}
	official := r.src.isOfficial()
	key := r.src.cacheKey() + " " + out.URL
	if cached, ok := r.cache.getRecord(key, cacheLifetime(official)); ok &&
		(cached.Absent && f.optional || isSHA256(cached.Digest)) {
		out.SHA256 = cached.Digest
		if cached.Absent {
			return nil, nil //nolint:nilnil // documented: an optional file that does not exist
		}
		return out, nil
	}
	text, err := r.fetcher.fetchText(ctx, r.src.fileURL(f.host, f.sums))
	var status *statusError
	if f.optional && errors.As(err, &status) && status.Code == http.StatusNotFound {
		if official || r.src.Trusted { // a digest cannot confirm that a file does not exist
			r.cache.putRecord(record{Key: key, Absent: true})
		}
		return nil, nil //nolint:nilnil // documented: an optional file that does not exist
	}
	if err != nil {
		return nil, err
	}
	if out.SHA256, err = findChecksum(text, baseName(f.path)); err != nil {
		return nil, err
	}
	if r.src.isCacheable(r.newFileClaim(f, out.SHA256), official) {
		r.cache.putRecord(record{Key: key, Digest: out.SHA256})
	}
	return out, nil
}

// resolveImage finds the digest of an image that hosts pull themselves. It uses the cache like resolveBinary.
func (r *resolver) resolveImage(ctx context.Context, i image) (desired.Image, error) {
	source := r.want.imageLocation(i)
	out := desired.Image{Name: source, Source: source, Roles: i.roles}
	official := !r.want.usesOtherRegistry(i)
	key := r.want.imageCacheKey(i) + " " + source + " linux/" + r.want.Arch
	if cached, ok := r.cache.getRecord(key, cacheLifetime(official)); ok &&
		isSHA256(strings.TrimPrefix(cached.Digest, digestPrefix)) {
		out.Digest, out.Size = cached.Digest, cached.Size
		return out, nil
	}
	img, err := r.registries.getManifest(ctx, i)
	if err != nil {
		return desired.Image{}, err
	}
	out.Digest, out.Size = img.blobs[0].Digest, transferSize(img.blobs)
	if r.src.isCacheable(r.newImageClaim(i, out.Digest), official) {
		r.cache.putRecord(record{Key: key, Digest: out.Digest, Size: out.Size})
	}
	return out, nil
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
