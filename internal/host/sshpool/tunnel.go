package sshpool

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A tunnel adds deadlines to a connection without them, such as an SSH channel. When one passes, the connection is
// closed and pending calls return os.ErrDeadlineExceeded. A later deadline does not reopen it.
type tunnel struct {
	net.Conn
	closed func() // called once, by the first Close

	mu     sync.Mutex
	timers [2]*time.Timer // read, write
	passed bool
}

func newTunnel(c net.Conn, closed func()) *tunnel {
	return &tunnel{Conn: c, closed: sync.OnceFunc(closed)}
}

func (t *tunnel) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	return n, t.explainError(err)
}

func (t *tunnel) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	return n, t.explainError(err)
}

func (t *tunnel) explainError(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.passed {
		return os.ErrDeadlineExceeded
	}
	return err
}

func (t *tunnel) SetDeadline(d time.Time) error {
	return errors.Join(t.setDeadline(0, d), t.setDeadline(1, d))
}

func (t *tunnel) SetReadDeadline(d time.Time) error { return t.setDeadline(0, d) }

func (t *tunnel) SetWriteDeadline(d time.Time) error { return t.setDeadline(1, d) }

func (t *tunnel) setDeadline(i int, d time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timers[i] != nil {
		t.timers[i].Stop()
		t.timers[i] = nil
	}
	if t.passed {
		return os.ErrDeadlineExceeded
	}
	if d.IsZero() {
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(d), func() {
		t.mu.Lock()
		stale := t.timers[i] != timer
		t.passed = t.passed || !stale
		t.mu.Unlock()
		if !stale {
			_ = t.Conn.Close()
		}
	})
	t.timers[i] = timer
	return nil
}

// CloseWrite ends the other side's input, like a TCP connection's.
func (t *tunnel) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close also stops the deadlines.
func (t *tunnel) Close() error {
	_ = t.SetDeadline(time.Time{})
	defer t.closed()
	return t.Conn.Close()
}
