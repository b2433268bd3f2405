package release

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"io"
	"kubeone/internal/model/desired"
	"net"
	"net/http"
	"time"
)

// registries reads image manifests for one architecture. It uses the operator's credentials for container tools, such
// as those from docker login.
type registries struct {
	secure, insecure *remote.Puller
	want             Want
	retry            func(context.Context, func() error) error
}

func newRegistries(src Source, want Want) (*registries, error) {
	out := &registries{
		want:  want,
		retry: func(ctx context.Context, try func() error) error { return retryTransient(ctx, src.retryPause(), try) },
	}
	var err error
	if out.secure, err = newPuller(secureTransport{src.httpTransport(false)}, want.Arch); err != nil {
		return nil, err
	}
	if want.Insecure {
		out.insecure, err = newPuller(src.httpTransport(true), want.Arch)
	}
	return out, err
}

func newPuller(through http.RoundTripper, arch string) (*remote.Puller, error) {
	puller, err := remote.NewPuller(
		remote.WithTransport(through),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithUserAgent("kubeone"),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), // field retry does the retries
	)
	if err != nil {
		return nil, fmt.Errorf("read container registries: %w", err)
	}
	return puller, nil
}

// fetchedImage is an image for one platform, with its blobs.
type fetchedImage struct {
	v1.Image
	blobs []desired.Blob // manifest, config, layers
}

// getManifest reads the image manifest for the desired architecture, which it selects if the name refers to an index.
func (r *registries) getManifest(ctx context.Context, i image) (fetchedImage, error) {
	puller, options := r.secure, []name.Option(nil)
	if r.want.allowsInsecure(i) {
		puller, options = r.insecure, []name.Option{name.Insecure}
	}
	ref, err := name.ParseReference(r.want.imageLocation(i), options...)
	if err != nil {
		return fetchedImage{}, fmt.Errorf("image name %q: %w", r.want.imageLocation(i), err)
	}
	var out fetchedImage
	err = r.retry(ctx, func() error {
		descriptor, err := puller.Get(ctx, ref)
		if err != nil {
			return err
		}
		img, err := descriptor.Image()
		if err != nil {
			return err
		}
		if !descriptor.MediaType.IsIndex() {
			if err := r.checkPlatform(img); err != nil {
				return err
			}
		}
		out.Image = img
		out.blobs, err = readBlobs(img)
		return err
	})
	return out, err
}

// checkPlatform returns an error if an image that is published for a single platform does not run on the hosts.
func (r *registries) checkPlatform(img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	if config.OS != "linux" || config.Architecture != r.want.Arch {
		return fmt.Errorf("the image is for %s/%s only, not for linux/%s", config.OS, config.Architecture,
			r.want.Arch)
	}
	return nil
}

// readBlobs returns the blobs of an image: manifest, config, layers.
func readBlobs(img v1.Image) ([]desired.Blob, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	size, err := img.Size()
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	return listBlobs(manifest, digest.String(), size), nil
}

// listBlobs returns a manifest, which has the given digest and size, and the blobs that it refers to: config, layers.
func listBlobs(manifest *v1.Manifest, digest string, size int64) []desired.Blob {
	blobs := []desired.Blob{
		{Digest: digest, Size: size, MediaType: string(manifest.MediaType)},
		{Digest: manifest.Config.Digest.String(), Size: manifest.Config.Size,
			MediaType: string(manifest.Config.MediaType)},
	}
	for _, l := range manifest.Layers {
		blobs = append(blobs, desired.Blob{Digest: l.Digest.String(), Size: l.Size, MediaType: string(l.MediaType)})
	}
	return blobs
}

// transferSize returns the size of the config and the layers in bytes.
func transferSize(blobs []desired.Blob) int64 {
	var sum int64
	for _, b := range blobs[1:] {
		sum += b.Size
	}
	return sum
}

// The timeouts of one request. A whole download has no timeout, but is aborted if no data arrives for stallTimeout.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	stallTimeout  = 60 * time.Second
)

// errPlainHTTP prevents an unnoticed downgrade to plain HTTP.
var errPlainHTTP = errors.New("the registry uses plain HTTP; insecureRegistry (--insecure-registry) allows " +
	"that for the host of overwriteRegistry")

// stallError says that the server stopped sending data. It implements net.Error, so it is treated as a network timeout.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string   { return fmt.Sprintf("no data for %s", e.after) }
func (e *stallError) Timeout() bool   { return true }
func (e *stallError) Temporary() bool { return true }

// baseTransport returns the transport that connects to servers. It uses the proxy in the environment and dial timeouts.
// It does not decompress responses, because that would change digests.
func baseTransport(skipVerify bool) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: skipVerify}, //nolint:gosec // set by the operator
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
	}
}

// stallTransport aborts a response if no data arrives for the given time.
type stallTransport struct {
	next  http.RoundTripper
	after time.Duration
}

func (t stallTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &stallBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, after: t.after}
	body.timer = time.AfterFunc(t.after, func() { cancel(&stallError{t.after}) })
	resp.Body = body
	return resp, nil
}

// stallBody is the body of a response from stallTransport. Like any body, it must be read by one goroutine at a time.
type stallBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

func (w *stallBody) Read(p []byte) (int, error) {
	w.timer.Reset(w.after)
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (w *stallBody) Close() error {
	w.timer.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// secureTransport refuses plain HTTP, except to this machine.
type secureTransport struct{ next http.RoundTripper }

func (t secureTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !isLoopback(req.URL.Hostname()) {
		return nil, errPlainHTTP
	}
	return t.next.RoundTrip(req)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkRedirect is a CheckRedirect function. It allows ten redirects, but none from HTTPS to HTTP.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than ten redirects")
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("redirected from HTTPS to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	return nil
}
