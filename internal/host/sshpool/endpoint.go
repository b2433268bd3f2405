package sshpool

import (
	"context"
	"errors"
	"sync"

	"kubeone/internal/host"
	"kubeone/internal/host/sshconfig"
)

// An endpoint is one end of SSH connections: a machine, a user, keys and the way to it. It has at most one live
// connection.
type endpoint struct {
	pool *Pool
	r    sshconfig.Resolved
	via  *endpoint // the previous hop, nil for the first
	key  string

	mu      sync.Mutex
	attempt *attempt // the latest attempt, nil before the first
}

// An attempt is one try to connect, shared by all callers during it.
type attempt struct {
	done chan struct{} // closed at the end; then the fields below are set
	conn *conn
	err  error
}

// isUsable reports whether a caller can wait for the attempt or use its result. If not, it must start another one.
func (a *attempt) isUsable() bool {
	select {
	case <-a.done:
		return a.err == nil && !a.conn.isLost()
	default:
		return true
	}
}

// ensureConnected returns the live connection, and opens one if there is none. Concurrent callers share one attempt and
// its error. If it failed because the caller that started it gave up, the next one tries again. The caller must release
// the connection.
func (e *endpoint) ensureConnected(ctx context.Context) (*conn, error) {
	for {
		e.mu.Lock()
		a := e.attempt
		mine := a == nil || !a.isUsable()
		if mine {
			a = &attempt{done: make(chan struct{})}
			e.attempt = a
		}
		e.mu.Unlock()
		if mine {
			a.conn, a.err = e.openConnection(ctx)
			close(a.done)
			return a.conn, a.err
		}
		select {
		case <-a.done:
			if a.err != nil && host.ClassOf(a.err) == host.Canceled && ctx.Err() == nil {
				continue
			}
			if a.err == nil && !e.pool.idle.acquire(a.conn) {
				continue // it was just lost or closed as idle
			}
			return a.conn, a.err
		case <-ctx.Done():
			return nil, e.classifyError("connect", context.Cause(ctx))
		}
	}
}

// openConnection loads the keys, connects to the machine and logs in. It loads the keys first, so that local errors are
// found before anything is dialled.
func (e *endpoint) openConnection(ctx context.Context) (*conn, error) {
	if e.pool.isClosed() {
		return nil, e.classifyError("connect", host.ErrClosed)
	}
	auth, err := e.pool.keys.Collect(e.r.Keys)
	if err != nil {
		return nil, e.classifyError("find a key to log in with", err)
	}
	defer auth.Close()
	var before *conn
	if e.via != nil { // not released, because this connection needs that of the bastion
		if before, err = e.via.ensureConnected(ctx); err != nil {
			return nil, &host.Error{Class: host.ClassOf(err), Host: e.r.Name, What: "go through its bastion", Err: err}
		}
	}
	select { // after the bastion is connected: a host that waits for it must not take its slot
	case e.pool.slots <- struct{}{}:
		defer func() { <-e.pool.slots }()
	case <-ctx.Done():
		return nil, e.classifyError("connect", context.Cause(ctx))
	}
	e.pool.count.addStats(e.r.Name, func(s *HostStats) { s.Dials++ })
	raw, err := e.dialHop(ctx, before)
	if err != nil {
		return nil, e.classifyError("connect", err)
	}
	c, err := e.handshake(ctx, raw, auth)
	if err != nil {
		_ = raw.Close()
		return nil, e.classifyError("log in", err)
	}
	e.pool.count.addStats(e.r.Name, func(s *HostStats) { s.Connections++ })
	return e.watchConnection(c)
}

// watchConnection starts watching a new connection, unless the pool was closed in the meantime. The caller must release
// the connection.
func (e *endpoint) watchConnection(c *conn) (*conn, error) {
	if e.pool.isClosed() {
		_ = c.close()
		return nil, e.classifyError("connect", host.ErrClosed)
	}
	c.uses = 1
	go c.watchTransport(e.pool.opts.KeepaliveInterval)
	return c, nil
}

// close closes the live connection, if there is one. An attempt in progress detects this itself.
func (e *endpoint) close() error {
	e.mu.Lock()
	a := e.attempt
	e.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		if a.conn != nil && !a.conn.isLost() {
			return a.conn.close()
		}
	default:
	}
	return nil
}

// classifyError adds class, address and hint to an error. It returns a *host.Error unchanged.
func (e *endpoint) classifyError(what string, err error) error {
	var already *host.Error
	if errors.As(err, &already) {
		return err
	}
	class, hint := explainError(err, e.r)
	return &host.Error{Class: class, Host: e.r.Name, Addr: e.r.Addr(), What: what, Hint: hint, Err: err}
}

// firstContacts returns the unapproved keys of this machine and its bastions, the outermost first.
func (e *endpoint) firstContacts() []host.FirstContact {
	var all []host.FirstContact
	if e.via != nil {
		all = e.via.firstContacts()
	}
	if c, ok := e.pool.known.Pending(e.r.Peer.Address); ok {
		all = append(all, c)
	}
	return all
}
