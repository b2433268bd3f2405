// Package release knows which binaries and container images make up a Kubernetes version, where they come from, and
// their digests.
//
// There are three sources. The official locations are the default: dl.k8s.io, the projects' releases on GitHub and
// their registries. A mirror is an HTTP server with the same files under BASE/HOST/PATH, and a registry with the same
// repositories under its own name. A bundle is one file with everything, which Create makes from one of the others, for
// hosts without network access.
//
// Resolve and Bundle.For both return desired.Artifacts: what to install, each part with the digest to check it against.
// Except for Artifacts.Pushed, the source does not matter after that.
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
	// Mirror is the base URL of a server with the binaries under MIRROR/HOST/PATH; "" means https://HOST/PATH.
	Mirror string
	// InsecureMirror allows plain HTTP for the mirror.
	InsecureMirror bool
	// Known holds digests that must match, whatever the source says.
	Known Digests
	// Trusted accepts a mirror's or custom registry's digests that are not known. The official locations are always
	// trusted.
	Trusted bool
	// CacheDir keeps digests between runs; "" keeps none. Digests from official locations are kept forever, because a
	// published version does not change there. Those from mirrors and custom registries are kept for an hour if they
	// are known or the source is trusted, and "there is no such file" for a day.
	CacheDir string
	// Transport carries requests to servers and registries; nil means one that uses the environment's proxy.
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

// validate reports whether the source is well formed and may be used; the error is a *MirrorError.
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
		return &MirrorError{u.Redacted(), "speaks HTTP without TLS; use https, or allow that with --insecure-mirror"}
	}
	return nil
}

// isOfficial reports whether files come from their official locations.
func (s Source) isOfficial() bool { return s.Mirror == "" }

// cacheKey identifies how files are fetched, in the keys of the cache. The URLs themselves say whether TLS is used.
func (s Source) cacheKey() string {
	if s.isOfficial() {
		return wayOfficial
	}
	return wayElsewhere
}

// urlOf returns the source's URL of HOST/PATH.
func (s Source) urlOf(host, path string) string {
	if s.Mirror == "" {
		return "https://" + host + "/" + path
	}
	return strings.TrimRight(s.Mirror, "/") + "/" + host + "/" + path
}

// hostFor returns the host that serves the files of an official host.
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
	return stalling{next: next, after: stallTimeout}
}

type web struct {
	client *http.Client
	pause  time.Duration
}

func (s Source) httpClient() web {
	return web{client: &http.Client{Transport: s.httpTransport(false), CheckRedirect: noDowngrade},
		pause: s.retryPause()}
}

// openURL makes one request and returns the body, which the caller closes, and its length or -1.
func (w web) openURL(ctx context.Context, method, url string) (io.ReadCloser, int64, error) {
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
func (w web) fetchText(ctx context.Context, url string) (string, error) {
	const limit = 1 << 20
	var text []byte
	err := tryAgain(ctx, w.pause, func() error {
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

// fetchSize returns the length of a file. If the server does not report it, it downloads the file and counts.
func (w web) fetchSize(ctx context.Context, url string) (int64, error) {
	var size int64
	err := tryAgain(ctx, w.pause, func() error {
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

func (w web) countBytes(ctx context.Context, url string) (int64, error) {
	body, _, err := w.openURL(ctx, http.MethodGet, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	return io.Copy(io.Discard, body)
}

// Names returns the images of a release by name only, without digests, for use in manifests. It sends no requests.
func Names(w Want) (desired.Artifacts, error) {
	v, err := VersionsFor(w.KubernetesVersion)
	if err != nil {
		return desired.Artifacts{}, err
	}
	a := desired.Artifacts{KubernetesVersion: w.KubernetesVersion, Arch: w.Arch}
	for _, i := range w.releaseImages(v) {
		a.Images = append(a.Images, desired.Image{Name: w.imageLocation(i), Roles: i.roles})
	}
	return a, nil
}
