package sshpool_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// newPool returns a pool isolated from the machine that runs the test.
func newPool(t *testing.T, o sshpool.Options) *sshpool.Pool {
	t.Helper()
	if o.HomeDir == "" {
		o.HomeDir = t.TempDir()
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.SystemDir == "" {
		o.SystemDir = t.TempDir()
	}
	// The servers run in this process, and the machine may be busy.
	o.DialTimeout, o.HandshakeTimeout = cmp.Or(o.DialTimeout, time.Minute), cmp.Or(o.HandshakeTimeout, time.Minute)
	p := sshpool.New(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// targetOf returns a target for a server as root, with its own key and the server's key pinned.
func targetOf(t *testing.T, s *sshtest.Server) host.Target {
	t.Helper()
	return host.Target{Name: "node-1", Address: "127.0.0.1", Port: s.Port(), KeyFile: sshtest.WriteKey(t, "").Path,
		HostKeys: []ssh.PublicKey{s.HostKey()}}
}

// shellHost returns a host that really runs commands.
func shellHost(t *testing.T) host.Host {
	t.Helper()
	return newPool(t, sshpool.Options{}).Host(targetOf(t, sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})))
}

// testContext returns a context that ends with the test, before the test's own timeout.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantClass(t *testing.T, err error, want host.Class) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of class %v", want)
	}
	if got := host.ClassOf(err); got != want {
		t.Fatalf("class %v, want %v: %v", got, want, err)
	}
}

// runScript runs a script that must succeed and returns its output.
func runScript(t *testing.T, h host.Host, script string, args ...string) string {
	t.Helper()
	res, err := h.Run(testContext(t), host.Cmd{Script: script, Args: args})
	must(t, err)
	return string(res.Stdout)
}

func hostPort(s *sshtest.Server) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
}

type netConn = net.Conn

var dialer net.Dialer
