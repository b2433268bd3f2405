// Package release determines which binaries and container images make up a Kubernetes version, where to fetch them, and
// what their digests are.
//
// There are three kinds of sources. The official locations are the default: dl.k8s.io, the releases of the projects on
// GitHub, and their registries. A mirror is an HTTP server with the same files under BASE/HOST/PATH, together with a
// registry that has the same repositories. A bundle is a single file with every binary and image, for hosts without
// network access. Create makes it from one of the other sources.
//
// Resolve and Library.For both return desired.Artifacts: the parts to install, each with the digest to check it
// against. After that, Artifacts.Pushed is the only difference between sources.
package release

import (
	"context"
	"fmt"
	"io"
	"kubeone/internal/model/desired"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Source says where to fetch a release. The zero value means the official locations, without a cache.
type Source struct {
	// Mirror is the base URL of a server that has the binaries under MIRROR/HOST/PATH. "" means the official locations,
	// https://HOST/PATH.
	Mirror string
	// InsecureMirror allows plain HTTP for the mirror.
	InsecureMirror bool
	// Known holds digests that the parts must have. They take precedence over the digests from the source.
	Known Digests
	// Trusted accepts digests from a mirror or custom registry even if they are not in Known. The official locations are
	// always trusted.
	Trusted bool
	// CacheDir is a directory that caches digests between runs; "" disables the cache. Digests from official locations
	// never expire, because a published version does not change there. Digests from mirrors and custom registries expire
	// after an hour; they are cached only if they are in Known or the source is trusted. The answer that a file does not
	// exist expires after a day at most.
	CacheDir string
	// Transport sends requests to servers and registries. nil means a transport that uses the proxy in the environment.
	Transport http.RoundTripper
	// RetryPause is the pause before the first retry after a transient failure; 0 means 500ms.
	RetryPause time.Duration
}

// DefaultCacheDir returns kubeone/release in the user's cache directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory for digests: %w", err)
	}
	return filepath.Join(dir, "kubeone", "release"), nil
}

// validate returns a *MirrorError if the mirror is not a usable base URL.
func (s Source) validate() error {
	if s.Mirror == "" {
		return nil
	}
	u, err := url.Parse(s.Mirror)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" || strings.ContainsFunc(s.Mirror, unicode.IsSpace) {
		return &MirrorError{s.Mirror, "is not a base URL; it looks like https://mirror.example.com/path"}
	}
	if u.Scheme != "https" && !s.InsecureMirror {
		return &MirrorError{u.Redacted(), "uses plain HTTP; use https, or allow plain HTTP with --insecure-mirror"}
	}
	return nil
}

// isOfficial reports whether files come from their official locations.
func (s Source) isOfficial() bool { return s.Mirror == "" }

// cacheKey returns how files are fetched, as a part of cache keys. It does not include whether TLS is used, because the
// URLs say that.
func (s Source) cacheKey() string {
	if s.isOfficial() {
		return fetchOfficial
	}
	return fetchElsewhere
}

// fileURL returns the URL of an official file at this source.
func (s Source) fileURL(host, path string) string {
	if s.Mirror == "" {
		return "https://" + host + "/" + path
	}
	return strings.TrimRight(s.Mirror, "/") + "/" + host + "/" + path
}

// hostFor returns the host that serves the files of an official host: the mirror, or that host itself.
func (s Source) hostFor(official string) string {
	if u, err := url.Parse(s.Mirror); err == nil && u.Host != "" {
		return u.Host
	}
	return official
}

func (s Source) retryPause() time.Duration {
	if s.RetryPause > 0 {
		return s.RetryPause
	}
	return 500 * time.Millisecond
}

func (s Source) httpTransport(skipVerify bool) http.RoundTripper {
	next := s.Transport
	if next == nil {
		next = baseTransport(skipVerify)
	}
	return stallTransport{next: next, after: stallTimeout}
}

type httpFetcher struct {
	client *http.Client
	pause  time.Duration
}

func (s Source) newFetcher() httpFetcher {
	return httpFetcher{client: &http.Client{Transport: s.httpTransport(false), CheckRedirect: checkRedirect},
		pause: s.retryPause()}
}

// openURL sends one request. It returns the response body, which the caller must close, and its length, or -1 if that
// is unknown.
func (w httpFetcher) openURL(ctx context.Context, method, url string) (io.ReadCloser, int64, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("User-Agent", "kubeone")
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, 0, &statusError{URL: url, Code: resp.StatusCode}
	}
	return resp.Body, resp.ContentLength, nil
}

// fetchText fetches a small file.
func (w httpFetcher) fetchText(ctx context.Context, url string) (string, error) {
	const limit = 1 << 20
	var text []byte
	err := retryTransient(ctx, w.pause, func() error {
		body, _, err := w.openURL(ctx, http.MethodGet, url)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		text, err = io.ReadAll(io.LimitReader(body, limit))
		return err
	})
	return string(text), err
}

// fetchSize returns the size of a file. If the server does not report it, fetchSize downloads the file and counts its
// bytes.
func (w httpFetcher) fetchSize(ctx context.Context, url string) (int64, error) {
	var size int64
	err := retryTransient(ctx, w.pause, func() error {
		body, length, err := w.openURL(ctx, http.MethodHead, url)
		if err != nil {
			return err
		}
		_ = body.Close()
		if length < 0 {
			length, err = w.countBytes(ctx, url)
		}
		size = length
		return err
	})
	return size, err
}

func (w httpFetcher) countBytes(ctx context.Context, url string) (int64, error) {
	body, _, err := w.openURL(ctx, http.MethodGet, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	return io.Copy(io.Discard, body)
}

// Names returns the images and published manifests of a release by name, without digests. It sends no requests.
func Names(w Want) (desired.Artifacts, error) {
	v, err := VersionsFor(w.KubernetesVersion)
	if err != nil {
		return desired.Artifacts{}, err
	}
	a := desired.Artifacts{KubernetesVersion: w.KubernetesVersion, Arch: w.Arch}
	for _, i := range w.releaseImages(v) {
		a.Images = append(a.Images, desired.Image{Name: w.imageLocation(i), Roles: i.roles})
	}
	for _, f := range w.publishedFiles() {
		a.Published = append(a.Published, f.newPublished(nil))
	}
	return a, nil
}
