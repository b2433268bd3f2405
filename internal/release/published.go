package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
)

// publishedFiles returns the manifests of the release that projects publish. There is no file with their digests: the
// digest is that of the content at the source.
func (w Want) publishedFiles() []file {
	var out []file
	for _, m := range plugins.Published(w.CNI, w.CNIVersion) {
		out = append(out, file{name: m.Name, version: m.Version, host: m.Host, path: m.Path, exact: true})
	}
	return out
}

// newPublished returns the manifest with that content, which may be nil.
func (f file) newPublished(content []byte) desired.PublishedManifest {
	out := desired.PublishedManifest{Name: f.name, Version: f.version, URL: Source{}.fileURL(f.host, f.path)}
	if content != nil {
		out.Content, out.Size, out.SHA256 = content, int64(len(content)), hexSum(content)
	}
	return out
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// FetchPublished returns the published manifests of the release with their content, from the cache or from the source.
// The errors are those of Resolve.
func FetchPublished(ctx context.Context, src Source, want Want) ([]desired.PublishedManifest, error) {
	r, err := newResolver(src, want)
	if err != nil || len(r.published) == 0 {
		return nil, err
	}
	r.files, r.images = nil, nil
	if err := r.forEach(ctx, nil, nil); err != nil {
		return nil, err
	}
	return r.found, r.checkClaims(nil, nil)
}

// resolvePublished finds the content of a manifest, in the cache or at the source. It caches only trusted content, and
// a digest for as long as resolveBinary does.
func (r *resolver) resolvePublished(ctx context.Context, f file) (desired.PublishedManifest, error) {
	url, official := r.src.fileURL(f.host, f.path), r.src.isOfficial()
	key := r.src.cacheKey() + " " + url
	if cached, ok := r.cache.getRecord(key, cacheLifetime(official)); ok && isSHA256(cached.Digest) {
		if content, ok := r.cache.getContent(cached.Digest); ok {
			return f.newPublished(content), nil
		}
	}
	content, err := r.fetcher.fetchManifest(ctx, url)
	if err != nil {
		return desired.PublishedManifest{}, err
	}
	out := f.newPublished(content)
	if r.src.isCacheable(r.newFileClaim(f, out.SHA256), official) {
		r.cache.putContent(content)
		r.cache.putRecord(record{Key: key, Digest: out.SHA256})
	}
	return out, nil
}

// fetchManifest fetches a file of at most network.MaxManifest bytes.
func (w httpFetcher) fetchManifest(ctx context.Context, url string) ([]byte, error) {
	var content []byte
	err := retryTransient(ctx, w.pause, func() error {
		body, _, err := w.openURL(ctx, http.MethodGet, url)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		content, err = io.ReadAll(io.LimitReader(body, network.MaxManifest+1))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(content) > network.MaxManifest:
		return nil, fmt.Errorf("%s has more than %d bytes", url, network.MaxManifest)
	case len(content) == 0:
		return nil, fmt.Errorf("%s is empty", url)
	}
	return content, nil
}

// checkPublished compares the digests of the manifests with the known ones, and sets Known.
func (r *resolver) checkPublished(claims *claimCheck) (err error) {
	for n, f := range r.published {
		claim := r.newFileClaim(f, r.found[n].SHA256)
		if r.found[n].Known, err = claims.checkClaim(claim, r.src.isOfficial()); err != nil {
			return err
		}
	}
	return nil
}

// publishedContents returns the manifests as entries of a bundle.
func (r *resolver) publishedContents() []content {
	var out []content
	for _, p := range r.found {
		out = append(out, content{
			Entry: Entry{Size: p.Size, SHA256: p.SHA256, Holds: p.Name + " " + p.Version},
			open:  inMemory(func() ([]byte, error) { return p.Content, nil }),
		})
	}
	return out
}

// checkPublished checks a manifest in an index.
func checkPublished(p desired.PublishedManifest, sizes map[string]int64) error {
	if p.Size > network.MaxManifest {
		return fmt.Errorf("%.80q has %d bytes", p.Name, p.Size)
	}
	return checkBinary(desired.Binary{
		Name: p.Name, Version: p.Version, URL: p.URL, SHA256: p.SHA256, Size: p.Size,
	}, sizes)
}

// publishedClaim returns the claim of a bundle about a manifest. The index has the official location.
func publishedClaim(p desired.PublishedManifest, source string) Claim {
	return Claim{What: p.Name + " " + p.Version, Name: p.URL[len("https://"):], SHA256: p.SHA256, Source: source}
}

// Published returns the published manifests of the release with their content. For leaves them out, because hosts do
// not need them. The errors are those of For.
func (l *Library) Published(want Want) ([]desired.PublishedManifest, error) {
	shelf, claims := l.searchOrderFor(want), l.claims
	var found []desired.PublishedManifest
	var missing []string
	for _, f := range want.publishedFiles() {
		fits := func(p desired.PublishedManifest) bool { return p.Name == f.name && p.Version == f.version }
		have, ok := findPart(shelf, func(a desired.Artifacts) []desired.PublishedManifest { return a.Published }, fits, fits,
			f.exact)
		if !ok {
			missing = append(missing, f.name+" "+f.version)
			continue
		}
		content, err := l.readEntry(have.SHA256, have.Name+" "+have.Version)
		if err != nil {
			return nil, err
		}
		out := f.newPublished(content)
		if out.Known, err = claims.checkClaim(f.newClaim(out.SHA256, l.describeSource(out.SHA256)), false); err != nil {
			return nil, err
		}
		found = append(found, out)
	}
	if len(missing) > 0 {
		return nil, l.missingError(want, missing)
	}
	return found, claims.untrustedError()
}

// readEntry reads a small entry and checks its digest. The index limits its size.
func (l *Library) readEntry(sum, what string) ([]byte, error) {
	b := l.bundleWith(sum)
	section, ok := b.Blob(sum)
	if !ok {
		return nil, errors.New("no bundle has " + sum)
	}
	content, err := io.ReadAll(section)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	if hexSum(content) != sum {
		return nil, b.alteredError(what)
	}
	return content, nil
}

// contentPath returns where a small file is cached by its digest.
func (c cache) contentPath(sum string) string { return filepath.Join(c.dir, sum+".content") }

// getContent returns the cached content with that digest.
func (c cache) getContent(sum string) ([]byte, bool) {
	if c.dir == "" {
		return nil, false
	}
	file, err := os.Open(c.contentPath(sum))
	if err != nil {
		return nil, false
	}
	defer func() { _ = file.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(file, network.MaxManifest+1))
	if err != nil || hexSum(content) != sum {
		return nil, false
	}
	return content, true
}

// putContent caches a small file under its digest. A failure to write is ignored.
func (c cache) putContent(content []byte) { c.writeFile(c.contentPath(hexSum(content)), content) }
