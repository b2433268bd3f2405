// Package closedport provides a TCP port that refuses connections. The port stays bound without a listener until the
// test ends. A port that was opened and closed could belong to another test's server by then.
package closedport

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// New returns a port of 127.0.0.1 that refuses every connection until the test ends.
func New(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("closedport: open a socket: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("closedport: bind: %v", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("closedport: read the port: %v", err)
	}
	return bound.(*syscall.SockaddrInet4).Port
}

// Address returns "127.0.0.1:port" of a New port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(New(t)))
}
