package sshpool_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/closedport"
	"kubeone/internal/testutil/sshtest"
)

func TestUnreachableHosts(t *testing.T) {
	t.Parallel()
	silent := sshtest.Start(t, sshtest.Options{Silent: true})
	web, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = web.Close() })
	go func() {
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	black := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	noName := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{
			Op:  "dial",
			Err: &net.DNSError{Err: "no such host", Name: "nope.invalid", IsNotFound: true},
		}
	}
	cases := map[string]struct {
		target  host.Target
		options sshpool.Options
		words   []string
	}{
		"closed port": {host.Target{Port: closedport.New(t)}, sshpool.Options{},
			[]string{"refused", "does sshd listen"}},
		"accepts and hangs": {host.Target{Port: silent.Port()},
			sshpool.Options{HandshakeTimeout: 20 * time.Millisecond}, []string{"handshake within 20ms"}},
		"not SSH": {host.Target{Port: web.Addr().(*net.TCPAddr).Port}, sshpool.Options{},
			[]string{"does not speak SSH"}},
		"packets vanish": {host.Target{}, sshpool.Options{NetDial: black, DialTimeout: 10 * time.Millisecond},
			[]string{"no answer within 10ms", "firewall"}},
		"name does not resolve": {host.Target{}, sshpool.Options{NetDial: noName},
			[]string{"no such host", "name server"}},
		"name is really resolved": {host.Target{Address: "nope.invalid"}, sshpool.Options{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.target.Name, c.target.KeyFile = "node-1", sshtest.WriteKey(t, "").Path
			if c.target.Address == "" {
				c.target.Address = "127.0.0.1"
			}
			_, err := newPool(t, c.options).Host(c.target).Run(testContext(t), host.Cmd{Script: ":"})
			wantClass(t, err, host.Unreachable)
			if !host.Transient(err) {
				t.Error("not transient")
			}
			for _, w := range append(c.words, "node-1 (root@"+c.target.Address) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func TestOneHostIsDialledOnceAtATime(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	dial := func(context.Context, string, string) (net.Conn, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		return nil, errors.New("no")
	}
	p := newPool(t, sshpool.Options{NetDial: dial})
	target := host.Target{Address: "192.0.2.1", KeyFile: sshtest.WriteKey(t, "").Path}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"}); err == nil {
				t.Error("no error")
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d dials at one time", most.Load())
	}
}

func TestCallerWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	first := make(chan struct{})
	var once sync.Once
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		mine := false
		once.Do(func() { mine = true })
		if mine {
			close(first)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	h := newPool(t, sshpool.Options{NetDial: dial}).Host(targetOf(t, s))
	ctx, cancel := context.WithCancel(testContext(t))
	gaveUp := make(chan error, 1)
	go func() {
		_, err := h.Run(ctx, host.Cmd{Script: ":"})
		gaveUp <- err
	}()
	<-first
	other := make(chan error, 1)
	go func() {
		_, err := h.Run(testContext(t), host.Cmd{Script: ":"})
		other <- err
	}()
	cancel()
	wantClass(t, <-gaveUp, host.Canceled)
	must(t, <-other)
}

// A machine that hangs differs from one that disconnects: it is silent until its time is up.
func TestAMachineThatSaysNothingIsSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accepted func(net.Conn)
		silent   bool
	}{
		"it hangs":      {func(net.Conn) {}, true},
		"it breaks off": {func(c net.Conn) { _ = c.Close() }, false},
	} {
		target := targetOf(t, sshtest.Start(t, sshtest.Options{}))
		target.Port = listens(t, c.accepted)
		_, err := newPool(t, sshpool.Options{HandshakeTimeout: 100 * time.Millisecond}).Host(target).
			Run(testContext(t), host.Cmd{Script: ":"})
		wantClass(t, err, host.Unreachable)
		if errors.Is(err, host.ErrSilent) != c.silent {
			t.Errorf("%s: %v", name, err)
		}
	}
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p := newPool(t, sshpool.Options{NetDial: never, DialTimeout: 10 * time.Millisecond})
	_, err := p.Host(targetOf(t, sshtest.Start(t, sshtest.Options{}))).Run(testContext(t), host.Cmd{Script: ":"})
	if wantClass(t, err, host.Unreachable); !errors.Is(err, host.ErrSilent) {
		t.Errorf("it takes no connection: %v", err)
	}
}

// listens returns the port of a listener that passes its connections to a function and keeps them open until the test
// ends.
func listens(t *testing.T, accepted func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			accepted(c)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestDialsAreBounded(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{AllLoopback: true})
	var now, most atomic.Int32
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	p := newPool(t, sshpool.Options{MaxDials: 3, NetDial: dial})
	target := targetOf(t, s)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			target := target
			target.Address = net.IPv4(127, 0, 1, byte(i+1)).String()
			if _, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m := most.Load(); m > 3 {
		t.Errorf("%d dials at one time", m)
	}
	if n := p.Stats().Connections; n != 24 {
		t.Errorf("%d connections", n)
	}
}

func TestConnectionLostInTheMiddleOfACommand(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		if s.User == "root" {
			_, _ = s.Stdout.Write([]byte("half"))
			s.Drop()
		}
		return 0
	}})
	_, err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Run(testContext(t),
		host.Cmd{Name: "upgrade", Script: ":"})
	wantClass(t, err, host.Lost)
	if !errors.Is(err, host.ErrConnectionLost) || !host.Transient(err) {
		t.Errorf("not a transient ErrConnectionLost: %v", err)
	}
}

func TestRebootBetweenCommandsIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	p := newPool(t, sshpool.Options{})
	h := p.Host(targetOf(t, s))
	for range 3 {
		runScript(t, h, ":")
		s.DropAll()
	}
	if n := s.Connections(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestKeepaliveNoticesAPausedHost(t *testing.T) {
	t.Parallel()
	var s *sshtest.Server
	s = sshtest.Start(t, sshtest.Options{Handler: func(session *sshtest.Session) int {
		s.Pause()
		<-session.Context().Done()
		return 1
	}})
	h := newPool(t, sshpool.Options{KeepaliveInterval: 200 * time.Millisecond}).Host(targetOf(t, s))
	_, err := h.Run(testContext(t), host.Cmd{Script: ":"})
	wantClass(t, err, host.Lost)
	if !strings.Contains(err.Error(), "3 keepalives") {
		t.Error(err)
	}
}

func TestKeepaliveSparesAnIdleHost(t *testing.T) {
	t.Parallel()
	var s *sshtest.Server
	s = sshtest.Start(t, sshtest.Options{Handler: func(*sshtest.Session) int {
		for range 4 { // no byte but keepalives
			<-s.Keepalives()
		}
		return 0
	}})
	// The server has three times as long for an answer: this machine may be busy.
	h := newPool(t, sshpool.Options{KeepaliveInterval: 500 * time.Millisecond}).Host(targetOf(t, s))
	runScript(t, h, ":")
	if s.Connections() != 1 {
		t.Error("reconnected")
	}
}
