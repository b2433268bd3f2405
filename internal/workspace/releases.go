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
	"time"

	"kubeone/internal/addons/chart"
	"kubeone/internal/engine"
	"kubeone/internal/machines/controllerimage"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// releases provides releases from bundles, or from the locations from which hosts download. It caches results, so that
// an engine gets the same answer each time.
type releases struct {
	source  release.Source
	bundles *release.Library       // nil if hosts download
	image   *controllerimage.Image // nil if the cluster does not run the controllers

	published []desired.PublishedManifest // set by preparePublished

	mu       sync.Mutex
	resolved map[release.Want]desired.Artifacts
	charts   map[string][]byte // archives
}

var _ engine.Releases = (*releases)(nil)

// Releases are open releases. The caller must close them.
type Releases interface {
	engine.Releases
	Close()
}

// OpenReleases opens the bundles and the operator's list of digests, if there are any. Without bundles, hosts download
// from the mirror; "" means the official locations.
func OpenReleases(ctx context.Context, o Options, mirror string) (Releases, error) {
	return openReleases(ctx, o, mirror)
}

func openReleases(ctx context.Context, o Options, mirror string) (*releases, error) {
	known, err := release.ReadDigests(o.Digests)
	if err != nil {
		return nil, err
	}
	r := &releases{resolved: map[release.Want]desired.Artifacts{}, charts: map[string][]byte{}, source: release.Source{
		Mirror: mirror, InsecureMirror: o.InsecureMirror, Known: known, Trusted: o.TrustSource,
	}}
	if dir, err := release.DefaultCacheDir(); err == nil {
		r.source.CacheDir = dir
	}
	if len(o.Bundles)+len(o.BundleSHA256) > 0 {
		options := release.LibraryOptions{Known: known, SHA256: o.BundleSHA256, Strict: o.Digests != ""}
		r.bundles, err = release.OpenLibrary(ctx, options, o.Bundles...)
	}
	return r, err
}

func (r *releases) Close() {
	if r.bundles != nil {
		_ = r.bundles.Close() // only read
	}
	if r.image != nil {
		_ = r.image.Close() // only read
	}
}

func (r *releases) Names(want release.Want) (desired.Artifacts, error) {
	a, err := release.Names(want)
	if len(a.Published) > 0 && len(r.published) > 0 {
		a.Published = r.published
	}
	return a, err
}

// publishedTimeout bounds the download of published manifests.
const publishedTimeout = 20 * time.Second

// preparePublished reads the published manifests of the cluster's network plugin, before an engine renders addons. A
// manifest that is not available has the reason as its problem.
func (r *releases) preparePublished(ctx context.Context, want desired.Cluster) error {
	wanted := release.Want{
		KubernetesVersion: want.KubernetesVersion, Arch: release.Architectures()[0], CNI: want.Network.CNI.Name,
		CNIVersion: want.Network.CNI.Version,
	}
	names, err := release.Names(wanted)
	if err != nil || len(names.Published) == 0 {
		return nil // the engine reports a release that does not exist
	}
	if r.bundles != nil {
		r.published, err = r.bundles.Published(wanted)
	} else {
		limited, cancel := context.WithTimeout(ctx, publishedTimeout)
		defer cancel()
		r.published, err = release.FetchPublished(limited, r.source, wanted)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.published = names.Published
		for n := range r.published {
			r.published[n].Problem = joinLines(err.Error())
		}
	}
	return nil
}

// joinLines returns the lines of an error as one.
func joinLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "; ")
}

func (r *releases) Resolve(ctx context.Context, want release.Want) (desired.Artifacts, error) {
	r.mu.Lock()
	a, ok := r.resolved[want]
	r.mu.Unlock()
	if ok {
		return a, nil
	}
	a, err := r.findRelease(ctx, want)
	if err == nil {
		r.mu.Lock()
		r.resolved[want] = a
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

func (r *releases) Chart(ctx context.Context, from chart.Source) ([]byte, error) {
	for _, p := range r.published {
		switch {
		case p.URL != from.URL:
		case p.Problem != "":
			return nil, &release.ChartError{Chart: from.String(), Err: errors.New(p.Problem)}
		default:
			return p.Content, nil
		}
	}
	key := from.Digest() + from.Version
	r.mu.Lock()
	archive, ok := r.charts[key]
	r.mu.Unlock()
	if ok {
		return archive, nil
	}
	archive, err := r.findChart(ctx, from)
	if err == nil {
		r.mu.Lock()
		r.charts[key] = archive
		r.mu.Unlock()
	}
	return archive, err
}

func (r *releases) findChart(ctx context.Context, from chart.Source) ([]byte, error) {
	if r.bundles == nil {
		return r.source.FetchChart(ctx, from)
	}
	return r.bundles.Chart(from)
}

func (r *releases) WorkloadImages() string {
	if r.bundles == nil {
		return ""
	}
	return r.bundles.WorkloadImages()
}

func (r *releases) Verify(ctx context.Context) error {
	if r.bundles == nil {
		return nil
	}
	return r.bundles.Verify(ctx)
}

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

// Bundle returns the content of a bundle, by its name in desired.BundleFile, and its size.
func (r *releases) Bundle(name string) (io.Reader, int64, error) {
	if r.bundles != nil {
		if content, ok := r.bundles.File(name); ok {
			size := content.Size()
			return content, size, nil
		}
	}
	return nil, 0, fmt.Errorf("no bundle has the name %s", name)
}

// ReleaseOpener opens releases for callers that learn the mirror later. It also uses bundles that appear in a directory
// in the meantime. It is safe for concurrent use.
type ReleaseOpener struct {
	opt Options

	mu   sync.Mutex
	open map[string]opened // by mirror
	// replaced holds releases that were opened before the directory changed. They stay open, because some work may still
	// use them.
	replaced []*releases
}

// opened holds releases, and the bundle files in the directory when they were opened.
type opened struct {
	*releases
	files []bundleFile
}

// NewReleaseOpener returns a ReleaseOpener without open releases.
func NewReleaseOpener(o Options) *ReleaseOpener {
	return &ReleaseOpener{opt: o, open: map[string]opened{}}
}

// From is like OpenReleases, but reuses open releases while the files in the directory stay the same. The error names
// the first file that cannot be used; it is not skipped.
func (r *ReleaseOpener) From(ctx context.Context, mirror string) (engine.Releases, error) {
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
		r.replaced = append(r.replaced, before.releases)
	}
	r.open[mirror] = opened{open, files}
	return open, nil
}

// Close closes all open releases.
func (r *ReleaseOpener) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, open := range r.open {
		open.Close()
	}
	for _, open := range r.replaced {
		open.Close()
	}
}

// bundleFile identifies a file and its version without reading it.
type bundleFile struct {
	path string
	info fs.FileInfo
}

// isUnchanged reports whether the file has been neither replaced nor modified.
func (f bundleFile) isUnchanged(now bundleFile) bool {
	return f.path == now.path && os.SameFile(f.info, now.info) && f.info.Size() == now.info.Size() &&
		f.info.ModTime().Equal(now.info.ModTime())
}

// bundleFiles returns the bundles in a directory, sorted by name. A file must not have the extension .tar before it is
// complete. Hidden files and files with other extensions are ignored. A missing directory counts as empty.
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
		info, err := os.Stat(path) // follows links
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed in the meantime
		case err != nil:
			return nil, &engine.ConfigError{Err: fmt.Errorf("directory of bundles: %w", err)}
		case info.Mode().IsRegular():
			out = append(out, bundleFile{path, info})
		}
	}
	return out, nil
}
