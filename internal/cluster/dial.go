package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"kubeone/internal/cluster/apicall"
)

// dialer opens connections through the endpoints. It first tries the endpoint that worked last, then the others in
// order. Endpoints that failed recently come last. It is safe for concurrent use.
type dialer struct {
	via    []Endpoint
	tls    *tls.Config
	limits limits

	mu    sync.Mutex
	last  int
	dead  map[int]time.Time // time until which a failed endpoint is tried last
	conns map[*conn]struct{}
}

func newDialer(via []Endpoint, config *tls.Config, l limits) *dialer {
	return &dialer{via: via, tls: config, limits: l, dead: map[int]time.Time{}, conns: map[*conn]struct{}{}}
}

// dialTLS opens a connection and completes the TLS handshake. Therefore an endpoint that accepts connections but does
// not answer also counts as failed.
func (d *dialer) dialTLS(ctx context.Context, network, _ string) (net.Conn, error) {
	return d.tryEndpoints(ctx, func(ctx context.Context, i int) (net.Conn, error) {
		raw, err := d.dialEndpoint(ctx, network, i)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(raw, d.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		return secure, nil
	})
}

// dialPlain opens a connection without TLS, for clients that others build from the REST configuration.
func (d *dialer) dialPlain(ctx context.Context, network, _ string) (net.Conn, error) {
	return d.tryEndpoints(ctx,
		func(ctx context.Context, i int) (net.Conn, error) { return d.dialEndpoint(ctx, network, i) })
}

// tryEndpoints calls open for each endpoint until one succeeds. If all fail, it returns an *apicall.UnreachableError.
func (d *dialer) tryEndpoints(ctx context.Context, open func(context.Context, int) (net.Conn, error)) (net.Conn,
	error) {
	failure := &apicall.UnreachableError{}
	for _, i := range d.endpointOrder() {
		one, cancel := context.WithTimeout(ctx, d.limits.dial)
		c, err := open(one, i)
		cancel()
		if err == nil {
			d.noteSuccess(i)
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connecting to the API server through %s: %w", d.via[i].ID, context.Cause(ctx))
		}
		d.noteFailure(i)
		failure.Endpoints = append(failure.Endpoints, d.via[i].ID)
		failure.Errs = append(failure.Errs, err)
	}
	return nil, failure
}

func (d *dialer) dialEndpoint(ctx context.Context, network string, i int) (net.Conn, error) {
	raw, err := d.via[i].Dial(ctx, network, d.via[i].Address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, dialer: d, endpoint: i}
	d.mu.Lock()
	d.conns[c] = struct{}{}
	d.mu.Unlock()
	return c, nil
}

// endpointOrder returns the indices of the endpoints in the order to try them.
func (d *dialer) endpointOrder() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var live, dead []int
	for n := range d.via {
		i := n
		switch { // moves the last working one to the front
		case n == 0:
			i = d.last
		case n <= d.last:
			i = n - 1
		}
		if time.Now().Before(d.dead[i]) {
			dead = append(dead, i)
		} else {
			live = append(live, i)
		}
	}
	return append(live, dead...)
}

func (d *dialer) noteSuccess(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = i
	delete(d.dead, i)
}

func (d *dialer) noteFailure(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead[i] = time.Now().Add(d.limits.dead)
}

// closeAll closes every connection that is still open.
func (d *dialer) closeAll() {
	d.mu.Lock()
	open := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		open = append(open, c)
	}
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// conn is a connection together with its endpoint.
type conn struct {
	net.Conn
	dialer   *dialer
	endpoint int
}

// Close closes the connection and removes it from the dialer.
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// retireConnection closes a connection that did not answer, and marks its endpoint as failed. Other requests on the
// connection then fail immediately instead of waiting too.
func (c *conn) retireConnection() {
	c.dialer.noteFailure(c.endpoint)
	_ = c.Close()
}
