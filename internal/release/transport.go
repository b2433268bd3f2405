package release

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// The deadlines of one request. A download has none as a whole, however slow it is, but it must not stand still.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	stallTimeout  = 60 * time.Second
)

// errPlainHTTP refuses what would be an unnoticed downgrade.
var errPlainHTTP = errors.New("the registry speaks HTTP without TLS; insecureRegistry (--insecure-registry) allows " +
	"that for overwriteRegistry's host")

// stallError says that a peer stopped sending; it is a net.Error, as a timeout of the network would be.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string   { return fmt.Sprintf("no data for %s", e.after) }
func (e *stallError) Timeout() bool   { return true }
func (e *stallError) Temporary() bool { return true }

// baseTransport is what requests go through at last: the proxy of the environment, no transparent decompression (it
// would break digests), bounded dials.
func baseTransport(skipVerify bool) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: skipVerify}, //nolint:gosec // asked for in the manifest
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
	}
}

// stalling ends a response whose body brings nothing for a while.
type stalling struct {
	next  http.RoundTripper
	after time.Duration
}

func (t stalling) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &watched{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, after: t.after}
	body.timer = time.AfterFunc(t.after, func() { cancel(&stallError{t.after}) })
	resp.Body = body
	return resp, nil
}

// watched is a body under watch. Like any body it is read by one goroutine at a time.
type watched struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request whose body this is
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.after)
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// secure lets plain HTTP pass only to this machine.
type secure struct{ next http.RoundTripper }

func (t secure) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !loopback(req.URL.Hostname()) {
		return nil, errPlainHTTP
	}
	return t.next.RoundTrip(req)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// noDowngrade is a CheckRedirect that follows ten redirects, none from HTTPS to HTTP.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than ten redirects")
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("redirected from HTTPS to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	return nil
}
