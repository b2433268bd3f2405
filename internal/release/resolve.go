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

// Resolve fetches the digests of everything in the desired release, in parallel. Hosts then download from the same
// source.
//
// The error is an *UnsupportedError for a release that this program does not install, a *MirrorError for an unusable
// mirror, ctx's error if ctx ended, a *FetchError with every part that could not be fetched, a *MismatchError if the
// source's digest differs from a known one, or an *UntrustedError if only the source itself confirms a digest. Optional
// parts (crictl) are left out if their source answers that it has no such file.
func Resolve(ctx context.Context, src Source, want Want) (desired.Artifacts, error) {
	r, err := newResolver(src, want)
	if err != nil {
		return desired.Artifacts{}, err
	}
	out := desired.Artifacts{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch}
	binaries := make([]*desired.Binary, len(r.files))
	images := make([]desired.Image, len(r.images))
	err = r.forEach(ctx,
		func(ctx context.Context, n int) (err error) {
			binaries[n],
				err = r.resolveBinary(ctx, r.files[n])
			return err
		},
		func(ctx context.Context, n int) (err error) {
			images[n], err = r.resolvePulled(ctx, r.images[n])
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

// checkClaims checks the source's digests of the release's files and images, in order, and marks the known ones.
func (r *resolver) checkClaims(binaries []*desired.Binary, images []desired.Image) (err error) {
	claims := claimCheck{known: r.src.Known, trusted: r.src.Trusted}
	for n, b := range binaries {
		if b == nil {
			continue
		}
		if b.Known, err = claims.checkClaim(r.claimOf(r.files[n], b.SHA256), r.src.isOfficial()); err != nil {
			return err
		}
	}
	for n, i := range r.images {
		if images[n].Known,
			err = claims.checkClaim(r.imageClaim(i, images[n].Digest), !r.want.usesOtherRegistry(i)); err != nil {
			return err
		}
	}
	return claims.untrustedError()
}

// claimOf returns the source's claim about a file.
func (r *resolver) claimOf(f file, sum string) Claim {
	return f.sourceClaim(sum, r.src.hostFor(f.host))
}

// imageClaim returns a registry's claim about an image.
func (r *resolver) imageClaim(i image, digest string) Claim {
	registry, _, _ := strings.Cut(r.want.imageLocation(i), "/")
	return imageClaim(i.officialName(), r.want.Arch, digest, registry)
}

// resolver finds the digests of one release in one source.
type resolver struct {
	src        Source
	want       Want
	files      []file
	images     []image
	web        web
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
		web: src.httpClient(), registries: regs, cache: cache{dir: src.CacheDir},
	}, nil
}

// forEach calls perFile and perImage with every index, in parallel, and collects the failures.
func (r *resolver) forEach(ctx context.Context, perFile, perImage func(context.Context, int) error) error {
	failures := make([]Failure, len(r.files)+len(r.images))
	var all sync.WaitGroup
	for n, f := range r.files {
		all.Go(func() {
			failures[n] = Failure{Part: f.name + " " + f.version, Host: r.src.hostFor(f.host), Err: perFile(ctx, n)}
		})
	}
	for n, i := range r.images {
		all.Go(func() {
			host, part, _ := strings.Cut(r.want.imageLocation(i), "/")
			failures[len(r.files)+n] = Failure{Part: "image " + part, Host: host, Err: perImage(ctx, n)}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("fetch what makes up Kubernetes %s: %w", r.want.KubernetesVersion, context.Cause(ctx))
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

// cacheLifetime returns how long cached digests are valid; 0 means forever.
func cacheLifetime(official bool) time.Duration {
	if official {
		return 0
	}
	return mirrorLifetime
}

// resolveBinary finds the digest of a file. It returns nil for an optional file that the source does not have. It
// caches only trusted answers, under a key that names their origin.
func (r *resolver) resolveBinary(ctx context.Context, f file) (*desired.Binary, error) {
	out := &desired.Binary{Name: f.name, Version: f.version, URL: r.src.urlOf(f.host, f.path), Archive: f.archive}
	official := r.src.isOfficial()
	key := r.src.cacheKey() + " " + out.URL
	if have, ok := r.cache.getRecord(key, cacheLifetime(official)); ok &&
		(have.Absent && f.optional || isSHA256(have.Digest)) {
		out.SHA256 = have.Digest
		if have.Absent {
			return nil, nil //nolint:nilnil // documented: an optional file that is not there
		}
		return out, nil
	}
	text, err := r.web.fetchText(ctx, r.src.urlOf(f.host, f.sums))
	var status *statusError
	if f.optional && errors.As(err, &status) && status.Code == http.StatusNotFound {
		if official || r.src.Trusted { // no digest confirms an absence
			r.cache.putRecord(record{Key: key, Absent: true})
		}
		return nil, nil //nolint:nilnil // documented: an optional file that is not there
	}
	if err != nil {
		return nil, err
	}
	if out.SHA256, err = findChecksum(text, baseName(f.path)); err != nil {
		return nil, err
	}
	if r.src.isCacheable(r.claimOf(f, out.SHA256), official) {
		r.cache.putRecord(record{Key: key, Digest: out.SHA256})
	}
	return out, nil
}

// resolvePulled finds the digest of an image that hosts pull themselves, and caches it like a file's.
func (r *resolver) resolvePulled(ctx context.Context, i image) (desired.Image, error) {
	source := r.want.imageLocation(i)
	out := desired.Image{Name: source, Source: source, Roles: i.roles}
	official := !r.want.usesOtherRegistry(i)
	key := r.want.imageCacheKey(i) + " " + source + " linux/" + r.want.Arch
	if have, ok := r.cache.getRecord(key, cacheLifetime(official)); ok &&
		isSHA256(strings.TrimPrefix(have.Digest, digestPrefix)) {
		out.Digest, out.Size = have.Digest, have.Size
		return out, nil
	}
	img, err := r.registries.getManifest(ctx, i)
	if err != nil {
		return desired.Image{}, err
	}
	out.Digest, out.Size = img.blobs[0].Digest, transferSize(img.blobs)
	if r.src.isCacheable(r.imageClaim(i, out.Digest), official) {
		r.cache.putRecord(record{Key: key, Digest: out.Digest, Size: out.Size})
	}
	return out, nil
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
