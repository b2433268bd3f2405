package etcd

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Endpoint is one member, reached through its own host.
type Endpoint struct {
	ID      string // of the host
	Address string // "127.0.0.1:2379", as seen from the host
	// Dial opens a connection from the host; it must be safe for concurrent use.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Access is everything needed to reach a cluster's etcd. It holds credentials, which printing and marshalling hide.
type Access struct {
	Credentials Credentials
	Via         []Endpoint // the hosts to go through, best first
	// Answer bounds one member's answer to one request, unless ctx ends earlier; 0 means one and a half seconds.
	Answer time.Duration
	// Election bounds the election of a leader by members that answer and see none; 0 means five seconds.
	Election time.Duration
}

const redactedAccess = "etcd.Access(redacted)"

// String hides the credentials.
func (Access) String() string { return redactedAccess }

// GoString hides the credentials.
func (Access) GoString() string { return redactedAccess }

// Format hides the credentials from every verb.
func (Access) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(redactedAccess)) }

// MarshalText hides the credentials from JSON, YAML and structured logs.
func (Access) MarshalText() ([]byte, error) { return []byte(redactedAccess), nil }
