package sshtest

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// A DialFunc has the signature of net.Dialer.DialContext and host.Options.NetDial.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Latency dials connections with a round trip of at least rtt. Each direction delays bytes by half of it, without
// limiting the throughput. Dialling takes one round trip, too. nil means a net.Dialer.
func Latency(rtt time.Duration, dial DialFunc) DialFunc {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return slowDown(ctx, c, rtt)
	}
}

// slowDown waits for the round trip of connecting and then delays the data of the connection. If ctx ends first, it
// closes the connection.
func slowDown(ctx context.Context, c net.Conn, rtt time.Duration) (net.Conn, error) {
	handshake := time.NewTimer(rtt)
	defer handshake.Stop()
	select {
	case <-handshake.C:
	case <-ctx.Done():
		_ = c.Close()
		return nil, ctx.Err()
	}
	s := &slowConn{Conn: c, out: newDelay(rtt / 2), in: newDelay(rtt / 2)}
	go s.send()
	go s.receive()
	return s, nil
}

// A slowConn delays both directions.
type slowConn struct {
	net.Conn
	out, in *delay
}

func (s *slowConn) Write(b []byte) (int, error) { return s.out.enqueue(b) }
func (s *slowConn) Read(b []byte) (int, error)  { return s.in.dequeue(b) }

func (s *slowConn) Close() error {
	err := s.Conn.Close()
	s.out.closeQueue(net.ErrClosed)
	s.in.closeQueue(net.ErrClosed)
	return err
}

func (s *slowConn) send() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.out.dequeue(buf)
		if n > 0 {
			_, err = s.Conn.Write(buf[:n])
		}
		if err != nil {
			s.out.closeQueue(err)
			return
		}
	}
}

func (s *slowConn) receive() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Conn.Read(buf)
		if n > 0 {
			_, _ = s.in.enqueue(buf[:n])
		}
		if err != nil {
			s.in.closeQueue(err)
			return
		}
	}
}

// A delay is a queue that returns bytes d after they were written.
type delay struct {
	d     time.Duration
	mu    sync.Mutex
	ready *sync.Cond
	queue []chunk
	err   error
}

type chunk struct {
	due   time.Time
	bytes []byte
}

func newDelay(d time.Duration) *delay {
	q := &delay{d: d}
	q.ready = sync.NewCond(&q.mu)
	return q
}

func (q *delay) enqueue(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return 0, q.err
	}
	q.queue = append(q.queue, chunk{time.Now().Add(q.d), append([]byte(nil), b...)})
	q.ready.Signal()
	return len(b), nil
}

// dequeue waits until the first bytes in the queue are due.
func (q *delay) dequeue(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) == 0 {
		if q.err != nil {
			return 0, q.err
		}
		q.ready.Wait()
	}
	if wait := time.Until(q.queue[0].due); wait > 0 {
		q.mu.Unlock()
		time.Sleep(wait) // this is the latency itself
		q.mu.Lock()
	}
	n := copy(b, q.queue[0].bytes)
	if q.queue[0].bytes = q.queue[0].bytes[n:]; len(q.queue[0].bytes) == 0 {
		q.queue = q.queue[1:]
	}
	return n, nil
}

func (q *delay) closeQueue(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		if err == nil {
			err = io.EOF
		}
		q.err = err
	}
	q.ready.Broadcast()
}
