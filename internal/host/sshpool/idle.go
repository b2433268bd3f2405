package sshpool

import (
	"slices"
	"sync"
)

// An idle holds the connections that nobody uses. Each costs memory, goroutines and keepalives, here and on its host,
// so that of more than most of them the one that was left longest ago is closed; a host that is needed again is
// connected to again. It is safe for concurrent use.
type idle struct {
	most int

	mu    sync.Mutex
	conns []*conn // left longest ago first
}

// acquire keeps a connection from being closed as idle until it is left, and reports false for one that is lost, or was
// closed already. Each take that succeeds needs a leave of its own.
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

// releaseAndClose ends one use of a connection. After the last one it is idle.
func (i *idle) releaseAndClose(c *conn) {
	if oldest := i.release(c); oldest != nil {
		_ = oldest.client.Close() // nobody waits for what it says
	}
}

// release is leave without the closing: the connection that is to be closed, or nil.
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
