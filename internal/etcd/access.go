package etcd

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Endpoint is one member, reached through the host on which it runs.
type Endpoint struct {
	ID      string // of the host
	Address string // "127.0.0.1:2379", as seen from the host
	// Dial opens a connection from the host; it must be safe for concurrent use.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Access is everything needed to reach the etcd of a cluster. It contains credentials, which printing and marshalling
// hide.
type Access struct {
	Credentials Credentials
	Via         []Endpoint // the hosts to go through, best first
	// Answer limits the time for the answer of one member to one request; 0 means one and a half seconds.
	Answer time.Duration
	// Election limits the wait for a leader if members answer but see none; 0 means five seconds.
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
