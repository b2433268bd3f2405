package sshpool

import (
	"slices"
	"sync"
)

// An idle holds the unused connections. Each costs memory, goroutines and keepalives, here and on its host, so at
// most most of them stay open. The least recently used one is closed first; its host is reconnected when needed. It
// is safe for concurrent use.
type idle struct {
	most int

	mu    sync.Mutex
	conns []*conn // least recently used first
}

// acquire keeps a connection from being closed as idle. It returns false for one that is lost or already closed. Each
// successful call needs a release.
func (i *idle) acquire(c *conn) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.isLost() {
		return false
	}
	if c.uses == 0 {
		i.conns = slices.DeleteFunc(i.conns, func(other *conn) bool { return other == c })
	}
	c.uses++
	return true
}

// releaseAndClose ends one use of a connection. After the last use, the connection is idle.
func (i *idle) releaseAndClose(c *conn) {
	if oldest := i.release(c); oldest != nil {
		_ = oldest.client.Close() // the result does not matter
	}
}

// release is releaseAndClose without closing: it returns the connection to close, or nil.
func (i *idle) release(c *conn) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.uses--; c.uses > 0 || c.isLost() {
		return nil
	}
	i.conns = append(slices.DeleteFunc(i.conns, (*conn).isLost), c)
	if len(i.conns) <= i.most {
		return nil
	}
	oldest := i.conns[0]
	i.conns = slices.Delete(i.conns, 0, 1)
	oldest.dead.Store(true)
	return oldest
}
