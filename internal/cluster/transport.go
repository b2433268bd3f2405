package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"kubeone/internal/cluster/apicall"
)

// limits are the timeouts of a client.
type limits struct {
	dial    time.Duration // for the connection and TLS handshake with one endpoint
	dead    time.Duration // how long a failed endpoint stays last in the order
	request time.Duration // for one request; for a watch, until it begins
	// idle time after which a connection is pinged; if no answer arrives within the same time, it is closed
	ping time.Duration
}

// defaultLimits returns the limits that are used outside tests.
func defaultLimits() limits {
	return limits{dial: 3 * time.Second, dead: 15 * time.Second, request: apicall.RequestTimeout, ping: 5 * time.Second}
}

// errNoAnswer is the cancellation cause of a request that exceeded its time limit.
var errNoAnswer = noAnswerError{}

// noAnswerError is a net.Error.
type noAnswerError struct{}

func (noAnswerError) Error() string   { return "no answer in time" }
func (noAnswerError) Timeout() bool   { return true }
func (noAnswerError) Temporary() bool { return true }

// newHTTPTransport returns an HTTP/2 transport that uses the dialer. Pings detect an unresponsive server, so that a
// watch cannot hang.
func newHTTPTransport(d *dialer) *http.Transport {
	return &http.Transport{
		DialContext:         d.dialPlain,
		DialTLSContext:      d.dialTLS,
		TLSClientConfig:     d.tls,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: d.limits.ping, PingTimeout: d.limits.ping},
	}
}

// deadlineTransport sets a deadline for every request, and closes connections that do not answer in time.
// http.Client.Timeout is not suitable, because it would also end watches.
type deadlineTransport struct {
	base    http.RoundTripper
	timeout time.Duration
	sent    atomic.Int64 // requests so far
}

// RoundTrip sends one request. The deadline includes the body, except for a watch.
func (t *deadlineTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.sent.Add(1)
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.timeout, func() { cancel(errNoAnswer) })
	var used atomic.Pointer[conn]
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		used.Store(underlyingConn(info.Conn))
	}})
	end := func() {
		timer.Stop()
		cancel(context.Canceled)
	}
	resp, err := t.base.RoundTrip(req.WithContext(traced))
	if err != nil {
		err = t.explainTimeout(ctx, err, used.Load())
		end()
		return nil, err
	}
	if req.URL.Query().Get("watch") != "" {
		timer.Stop()
	}
	resp.Body = &deadlineBody{
		ReadCloser: resp.Body,
		end:        end,
		explain:    func(err error) error { return t.explainTimeout(ctx, err, used.Load()) },
	}
	return resp, nil
}

// explainTimeout returns errNoAnswer instead of err if the request exceeded its time limit, and then also retires the
// connection. Otherwise it returns err.
func (t *deadlineTransport) explainTimeout(ctx context.Context, err error, used *conn) error {
	if !errors.Is(context.Cause(ctx), errNoAnswer) {
		return err
	}
	if used == nil {
		return errNoAnswer
	}
	used.retireConnection()
	return fmt.Errorf("through %s: %w", used.dialer.via[used.endpoint].ID, errNoAnswer)
}

// underlyingConn returns the conn that carries a TLS connection; nil if there is none.
func underlyingConn(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	ours, _ := c.(*conn)
	return ours
}

// deadlineBody ends the deadline of a request when its body is closed.
type deadlineBody struct {
	io.ReadCloser
	end     func()
	explain func(error) error
}

// Read returns errNoAnswer if the deadline ended it.
func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.explain(err)
	}
	return n, err
}

// Close closes the body and ends the request's deadline.
func (b *deadlineBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
