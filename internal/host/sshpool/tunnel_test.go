package sshpool_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// echo listens and returns its input.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dialEcho(t *testing.T) net.Conn {
	t.Helper()
	h := newPool(t, sshpool.Options{}).Host(targetOf(t, sshtest.Start(t, sshtest.Options{})))
	ctx, cancel := context.WithCancel(testContext(t))
	c, err := h.Dial(ctx, "tcp", echo(t))
	must(t, err)
	cancel() // ends the dialling only
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTunnelCarriesBytes(t *testing.T) {
	t.Parallel()
	c := dialEcho(t)
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err := c.Write([]byte("hello\n"))
	must(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestTunnelDeadlines(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(net.Conn, time.Time) error{
		"both": net.Conn.SetDeadline, "read": net.Conn.SetReadDeadline, "write": net.Conn.SetWriteDeadline,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialEcho(t)
			must(t, set(c, time.Now().Add(time.Hour)))
			must(t, set(c, time.Time{}))
			must(t, set(c, time.Now().Add(10*time.Millisecond)))
			_, err := c.Read(make([]byte, 1))
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTunnelServesHTTP(t *testing.T) {
	t.Parallel()
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(api.Close)
	h := newPool(t, sshpool.Options{}).Host(targetOf(t, sshtest.Start(t, sshtest.Options{})))
	client := api.Client()
	client.Transport.(*http.Transport).DialContext = h.Dial
	for range 3 {
		resp, err := client.Get(api.URL)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		if string(body) != "ok" {
			t.Errorf("got %q", body)
		}
	}
}

func TestTunnelTrouble(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	for name, c := range map[string]struct {
		server sshtest.Options
		limit  time.Duration // time for the server, however busy the machine is; 0: the pool's default
		words  string
	}{
		"no listener":       {sshtest.Options{}, 0, "refused"},
		"forbidden":         {sshtest.Options{NoForwarding: true}, 0, "AllowTcpForwarding"},
		"no answer in time": {sshtest.Options{Dial: never}, 3 * time.Second, "no answer within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newPool(t, sshpool.Options{DialTimeout: c.limit}).Host(targetOf(t,
				sshtest.Start(t, c.server)))
			_, err := h.Dial(testContext(t), "tcp", "127.0.0.1:1")
			wantClass(t, err, host.Tunnel)
			if !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTunnelEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	c, err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Dial(testContext(t), "tcp", echo(t))
	must(t, err)
	s.DropAll()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("still open")
	}
}
