package sshpool

import (
	"slices"
	"sync"
)

// An idle holds the unused connections. Each one costs memory, goroutines and keepalives, here and on its host, so
// their number is limited. The least recently used one is closed first. A host whose connection was closed is connected
// again when needed. It is safe for concurrent use.
type idle struct {
	most int

	mu    sync.Mutex
	conns []*conn // least recently used first
}

// acquire prevents a connection from being closed as idle. It returns false if the connection is lost or already
// closed. Each successful call needs a release.
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
		_ = oldest.client.Close() // an error has no consequences
	}
}

// release ends one use of a connection. It returns the connection that the caller must close now, or nil.
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
