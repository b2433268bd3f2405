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
	dead    time.Duration // how long a failed endpoint is tried last
	request time.Duration // for one request; for a watch, until it begins
	// a connection silent for this time is pinged; without an answer for this time again it is dead
	ping time.Duration
}

// defaultLimits returns the limits outside tests.
func defaultLimits() limits {
	return limits{dial: 3 * time.Second, dead: 15 * time.Second, request: apicall.RequestTimeout, ping: 5 * time.Second}
}

// errNoAnswer is the cause when a request took longer than its limit.
var errNoAnswer = noAnswerError{}

// noAnswerError is a net.Error.
type noAnswerError struct{}

func (noAnswerError) Error() string   { return "no answer in time" }
func (noAnswerError) Timeout() bool   { return true }
func (noAnswerError) Temporary() bool { return true }

// newHTTPTransport returns an HTTP/2 transport over the dialer's connections. Pings detect a frozen server, so that a
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

// timed gives every request its own deadline and retires connections that do not answer in time. http.Client.Timeout
// would also end watches.
type deadlineTransport struct {
	base    http.RoundTripper
	timeout time.Duration
}

// RoundTrip sends one request. The deadline includes the body, except for a watch.
func (t *deadlineTransport) RoundTrip(req *http.Request) (*http.Response, error) {
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

// explainTimeout replaces a cancellation by its cause. If the cause is errNoAnswer, it retires the connection.
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

// underlyingConn returns the conn below TLS; nil if there is none.
func underlyingConn(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	ours, _ := c.(*conn)
	return ours
}

// timedBody ends a request's deadline when its body is closed.
type deadlineBody struct {
	io.ReadCloser
	end     func()
	explain func(error) error
}

// Read returns the cause if the deadline ended it.
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
