package workspace

import (
	"context"
	"fmt"
	"io"
	"sync"

	"kubeone/internal/controllerimage"
	"kubeone/internal/desired"
	"kubeone/internal/engine"
	"kubeone/internal/release"
)

// releases are those of bundles, or of the locations from which hosts download. What was found out is kept, so that an
// engine that asks again is told the same.
type releases struct {
	source  release.Source
	bundles *release.Library       // nil when hosts download
	image   *controllerimage.Image // nil where no controllers are to run

	mu    sync.Mutex
	known map[release.Want]desired.Artifacts
}

var _ engine.Releases = (*releases)(nil)

// Releases are releases that somebody has opened, and closes.
type Releases interface {
	engine.Releases
	Close()
}

// OpenReleases opens the bundles, if there are any, and the operator's list of digests. Without bundles, hosts download
// from the mirror, "" for the official locations.
func OpenReleases(ctx context.Context, o Options, mirror string) (Releases, error) {
	return openReleases(ctx, o, mirror)
}

// openReleases opens the bundles, if there are any, and the operator's list of digests.
func openReleases(ctx context.Context, o Options, mirror string) (*releases, error) {
	known, err := release.KnownDigests(o.Digests)
	if err != nil {
		return nil, err
	}
	r := &releases{known: map[release.Want]desired.Artifacts{}, source: release.Source{
		Mirror: mirror, InsecureMirror: o.InsecureMirror, Known: known, Trusted: o.TrustSource,
	}}
	if dir, err := release.DefaultCacheDir(); err == nil {
		r.source.CacheDir = dir
	}
	if len(o.Bundles)+len(o.BundleSHA256) > 0 {
		vouched := release.LibraryOptions{Known: known, SHA256: o.BundleSHA256}
		r.bundles, err = release.OpenLibrary(ctx, vouched, o.Bundles...)
	}
	return r, err
}

// Close closes the bundles.
func (r *releases) Close() {
	if r.bundles != nil {
		_ = r.bundles.Close() // only read
	}
	if r.image != nil {
		_ = r.image.Close() // only read
	}
}

// Names implements engine.Releases.
func (r *releases) Names(want release.Want) (desired.Artifacts, error) { return release.Names(want) }

// Resolve implements engine.Releases.
func (r *releases) Resolve(ctx context.Context, want release.Want) (desired.Artifacts, error) {
	r.mu.Lock()
	a, ok := r.known[want]
	r.mu.Unlock()
	if ok {
		return a, nil
	}
	a, err := r.find(ctx, want)
	if err == nil {
		r.mu.Lock()
		r.known[want] = a
		r.mu.Unlock()
	}
	return a, err
}

func (r *releases) find(ctx context.Context, want release.Want) (desired.Artifacts, error) {
	if r.bundles == nil {
		return release.Resolve(ctx, r.source, want)
	}
	a, err := r.bundles.For(want)
	a.Pushed = true
	return a, err
}

// Verify implements engine.Releases.
func (r *releases) Verify(ctx context.Context) error {
	if r.bundles == nil {
		return nil
	}
	return r.bundles.Verify(ctx)
}

// Blob implements engine.Releases.
func (r *releases) Blob(sum string) (io.Reader, int64, error) {
	if r.image != nil {
		if content, size, ok := r.image.Blob(sum); ok {
			return content, size, nil
		}
	}
	if r.bundles == nil {
		return nil, 0, fmt.Errorf("nothing to upload %s from: give the bundle with --bundle", sum)
	}
	content, ok := r.bundles.Blob(sum)
	if !ok {
		return nil, 0, fmt.Errorf("no bundle has %s", sum)
	}
	size := content.Size()
	return content, size, nil
}

// Bundle returns a whole bundle, by the name that desired.BundleFile has.
func (r *releases) Bundle(name string) (io.Reader, int64, error) {
	if r.bundles != nil {
		if content, ok := r.bundles.File(name); ok {
			return content, content.Size(), nil
		}
	}
	return nil, 0, fmt.Errorf("no bundle is %s", name)
}

// ReleasesOf opens releases for whoever learns only later which mirror is meant. Its methods may be called by several
// goroutines at the same time.
type ReleasesOf struct {
	opt Options

	mu   sync.Mutex
	open map[string]*releases // by mirror
}

// NewReleasesOf opens nothing yet.
func NewReleasesOf(o Options) *ReleasesOf { return &ReleasesOf{opt: o, open: map[string]*releases{}} }

// From is as OpenReleases; what is open is used again.
func (r *ReleasesOf) From(ctx context.Context, mirror string) (engine.Releases, error) {
	if len(r.opt.Bundles) > 0 {
		mirror = "" // nothing is downloaded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if open := r.open[mirror]; open != nil {
		return open, nil
	}
	open, err := openReleases(ctx, r.opt, mirror)
	if err != nil {
		return nil, err
	}
	r.open[mirror] = open
	return open, nil
}

// Close closes all that was opened.
func (r *ReleasesOf) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, open := range r.open {
		open.Close()
	}
}
