// Package sshtest is an SSH server in the process of the test. It speaks the real protocol and runs commands with a Go
// function (Shell really runs them). On request it misbehaves: it hangs, drops connections or presents another key. One
// server can stand for many hosts, on all addresses 127.x.y.z of one port.
package sshtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Options configure a Server. With the zero value, every key is accepted, and every command succeeds without output.
type Options struct {
	Handler        Handler         // runs commands
	HostKeys       []ssh.Signer    // nil: a new Ed25519 key
	AuthorizedKeys []ssh.PublicKey // keys that may log in; nil means all
	UserCA         ssh.PublicKey   // certificates of this CA may log in, too
	MaxAuthTries   int             // 0 means 6, as in sshd
	AllLoopback    bool            // answer on every 127.x.y.z, not only on 127.0.0.1
	Silent         bool            // accept connections and never answer
	NoForwarding   bool            // refuse tunnels
	RTT            time.Duration   // minimum round-trip time, also when connecting
	// Dial opens tunnels; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Server is one listener. Close it, or create it with Start.
type Server struct {
	opts     Options
	listener net.Listener
	ctx      context.Context //nolint:containedctx // the server's life
	cancel   context.CancelFunc

	mu     sync.Mutex
	conns  map[net.Conn]bool
	paused chan struct{} // not nil while paused; closed by Resume
	total  int
	asked  chan struct{} // one for each answered keepalive, up to its capacity
}

// Start serves until the end of the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// New serves until Close.
func New(o Options) (*Server, error) {
	if len(o.HostKeys) == 0 {
		k, err := NewKey()
		if err != nil {
			return nil, err
		}
		o.HostKeys = []ssh.Signer{k}
	}
	if o.Handler == nil {
		o.Handler = func(*Session) int { return 0 }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	address := "127.0.0.1:0"
	if o.AllLoopback {
		address = "0.0.0.0:0"
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("sshtest: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		opts: o, listener: l, ctx: ctx, cancel: cancel, conns: map[net.Conn]bool{}, asked: make(chan struct{}, 64),
	}
	go s.acceptLoop()
	return s, nil
}

// Port returns the port of the server.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Addr returns "127.0.0.1:port".
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) }

// HostKey returns the first of the server's keys.
func (s *Server) HostKey() ssh.PublicKey { return s.opts.HostKeys[0].PublicKey() }

// Connections returns the number of accepted TCP connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Keepalives receives once for each answered keepalive. It buffers up to 64.
func (s *Server) Keepalives() <-chan struct{} { return s.asked }

// DropAll cuts every connection, like a reboot. New ones are accepted.
func (s *Server) DropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Pause makes the server silent, like a paused machine: connections stay open, and nothing is answered.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		s.paused = make(chan struct{})
	}
}

// Resume ends a Pause and answers everything received since.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		close(s.paused)
		s.paused = nil
	}
}

// Close stops listening and cuts every connection.
func (s *Server) Close() {
	s.cancel()
	_ = s.listener.Close()
	s.DropAll()
}

func (s *Server) acceptLoop() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if a, ok := c.LocalAddr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
			_ = c.Close()
			continue
		}
		s.mu.Lock()
		s.total++
		s.conns[c] = true
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			_ = c.Close()
		}
		go s.serveConn(c)
	}
}

func (s *Server) forgetConn(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// deafConn delays received data while the server is paused.
type deafConn struct {
	net.Conn
	s *Server
}

func (d *deafConn) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	d.s.mu.Lock()
	paused := d.s.paused
	d.s.mu.Unlock()
	if paused != nil && err == nil {
		select {
		case <-paused:
		case <-d.s.ctx.Done():
		}
	}
	return n, err
}
