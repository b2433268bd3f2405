package sshpool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
)

// keepaliveMisses is the number of unanswered intervals after which a connection counts as lost.
const keepaliveMisses = 3

// A conn is a living SSH connection. It ends once, for one reason.
type conn struct {
	client   *ssh.Client
	idle     *idle
	uses     int // guarded by idle.mu: commands, tunnels, and callers about to start one
	meter    *meteredConn
	sessions chan struct{} // one per command running
	lost     chan struct{} // closed when the transport has ended
	dead     atomic.Bool   // known to be unusable, perhaps before the transport reports it
	silent   atomic.Bool   // ended because of keepalives
	sudo     atomic.Bool   // sudo is known to work
}

func newConn(client *ssh.Client, meter *meteredConn, sessions int, idle *idle) *conn {
	return &conn{client: client, meter: meter, idle: idle,
		sessions: make(chan struct{}, sessions), lost: make(chan struct{})}
}

// isLost reports whether the connection is lost, so that another must be opened.
func (c *conn) isLost() bool {
	if c.dead.Load() {
		return true
	}
	select {
	case <-c.lost:
		return true
	default:
		return false
	}
}

func (c *conn) close() error {
	c.dead.Store(true)
	if err := c.client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close SSH connection: %w", err)
	}
	return nil
}

// lostError closes the connection and returns why it was lost, if known.
func (c *conn) lostError(cause error) error {
	c.dead.Store(true)
	if c.silent.Load() {
		return fmt.Errorf("%w: no answer to %d keepalives", host.ErrConnectionLost, keepaliveMisses)
	}
	if cause == nil {
		return host.ErrConnectionLost
	}
	return fmt.Errorf("%w: %w", host.ErrConnectionLost, cause)
}

// watchTransport waits until the transport ends, and closes it if the peer does not respond. It sends keepalives only
// while no data arrives.
func (c *conn) watchTransport(interval time.Duration) {
	go func() {
		_ = c.client.Wait()
		close(c.lost)
	}()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var heard int64
	waiting, misses := false, 0
	for {
		select {
		case <-c.lost:
			return
		case <-ticker.C:
		}
		now := c.meter.received.Load()
		switch {
		case now != heard:
			heard, waiting, misses = now, false, 0
		case !waiting:
			waiting = true
			go func() { _, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil) }()
		default:
			if misses++; misses >= keepaliveMisses {
				c.silent.Store(true)
				_ = c.client.Close()
				return
			}
		}
	}
}

// A meteredConn counts received bytes.
type meteredConn struct {
	net.Conn
	received atomic.Int64
}

func (m *meteredConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.received.Add(int64(n))
	return n, err
}

// openSession opens a channel for one command, waiting for a free slot. The caller must call release when the channel
// is closed.
func (c *conn) openSession(ctx context.Context) (s *ssh.Session, release func(), err error) {
	if !c.idle.acquire(c) {
		return nil, nil, c.lostError(nil)
	}
	select {
	case c.sessions <- struct{}{}:
		release = func() {
			<-c.sessions
			c.idle.releaseAndClose(c)
		}
	case <-c.lost:
		c.idle.releaseAndClose(c)
		return nil, nil, c.lostError(nil)
	case <-ctx.Done():
		c.idle.releaseAndClose(c)
		return nil, nil, context.Cause(ctx)
	}
	type opened struct {
		s   *ssh.Session
		err error
	}
	ch := make(chan opened, 1)
	go func() {
		s, err := c.client.NewSession()
		ch <- opened{s, err}
	}()
	select {
	case o := <-ch:
		var refused *ssh.OpenChannelError
		if o.err != nil && !errors.As(o.err, &refused) {
			o.err = c.lostError(o.err)
		}
		if o.err != nil {
			release()
		}
		return o.s, release, o.err
	case <-ctx.Done():
		go func(free func()) { // the answer may still come; the result release is nil by then
			if o := <-ch; o.s != nil {
				_ = o.s.Close()
			}
			free()
		}(release)
		return nil, nil, context.Cause(ctx)
	}
}
