package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kubeone/internal/engine"
	"kubeone/internal/machines/controllerimage"
	"kubeone/internal/model/desired"
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
	known, err := release.ReadDigests(o.Digests)
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
		vouched := release.LibraryOptions{
			Known: known, SHA256: o.BundleSHA256, Strict: o.Digests != "",
		}
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
	a, err := r.findRelease(ctx, want)
	if err == nil {
		r.mu.Lock()
		r.known[want] = a
		r.mu.Unlock()
	}
	return a, err
}

func (r *releases) findRelease(ctx context.Context, want release.Want) (desired.Artifacts, error) {
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
			size := content.Size()
			return content, size, nil
		}
	}
	return nil, 0, fmt.Errorf("no bundle is %s", name)
}

// ReleasesOf opens releases for whoever learns only later which mirror is meant, and for whom bundles appear in a
// directory meanwhile. Its methods may be called by several goroutines at the same time.
type ReleasesOf struct {
	opt Options

	mu   sync.Mutex
	open map[string]opened // by mirror
	// earlier are those that were open before the directory changed: what was begun with them goes on with them.
	earlier []*releases
}

// opened are releases, and the files of the directory that they were opened with.
type opened struct {
	*releases
	files []bundleFile
}

// NewReleasesOf opens nothing yet.
func NewReleasesOf(o Options) *ReleasesOf { return &ReleasesOf{opt: o, open: map[string]opened{}} }

// From is as OpenReleases; what is open is used again for as long as the directory has the same files. Of a file that
// cannot be used the error says which it is, and nothing else is taken in its place.
func (r *ReleasesOf) From(ctx context.Context, mirror string) (engine.Releases, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files, err := bundleFiles(r.opt.BundleDir)
	if err != nil {
		return nil, err
	}
	o := r.opt
	o.Bundles = slices.Clone(o.Bundles)
	for _, f := range files {
		o.Bundles = append(o.Bundles, f.path)
	}
	if len(o.Bundles) > 0 {
		mirror = "" // nothing is downloaded
	}
	before, isOpen := r.open[mirror]
	if isOpen && slices.EqualFunc(before.files, files, bundleFile.isUnchanged) {
		return before.releases, nil
	}
	open, err := openReleases(ctx, o, mirror)
	if err != nil {
		return nil, err
	}
	if isOpen {
		r.earlier = append(r.earlier, before.releases)
	}
	r.open[mirror] = opened{open, files}
	return open, nil
}

// Close closes all that was opened.
func (r *ReleasesOf) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, open := range r.open {
		open.Close()
	}
	for _, open := range r.earlier {
		open.Close()
	}
}

// bundleFile is what is known of a file without reading it.
type bundleFile struct {
	path string
	info fs.FileInfo
}

// isUnchanged reports whether nobody has put another file in the place of this one, or written to it.
func (f bundleFile) isUnchanged(now bundleFile) bool {
	return f.path == now.path && os.SameFile(f.info, now.info) && f.info.Size() == now.info.Size() &&
		f.info.ModTime().Equal(now.info.ModTime())
}

// bundleFiles are the bundles in a directory, by name. Whoever puts one there gives it its name when it is complete:
// others, and hidden ones, are not looked at. A directory that is not there has none.
func bundleFiles(dir string) ([]bundleFile, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &engine.ConfigError{Err: fmt.Errorf("directory of bundles: %w", err)}
	}
	var out []bundleFile
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".tar" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // of what a link leads to
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed just now
		case err != nil:
			return nil, &engine.ConfigError{Err: fmt.Errorf("directory of bundles: %w", err)}
		case info.Mode().IsRegular():
			out = append(out, bundleFile{path, info})
		}
	}
	return out, nil
}
