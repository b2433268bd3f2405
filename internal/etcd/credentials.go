package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Credentials are what an etcd client needs, in PEM: the etcd CA, and the etcd client certificate of the API server
// with its key. Printing, logging or encoding shows a placeholder.
type Credentials struct {
	CA, Cert, Key []byte
}

const redacted = "etcd.Credentials(redacted)"

// String returns a placeholder.
func (Credentials) String() string { return redacted }

// GoString returns a placeholder.
func (Credentials) GoString() string { return redacted }

// Format prints a placeholder for every verb.
func (Credentials) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(redacted)) }

// MarshalText encodes a placeholder, for JSON, YAML and structured logs too.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Complete reports whether all three parts are set. It does not check their content.
func (c Credentials) Complete() bool { return len(c.CA) > 0 && len(c.Cert) > 0 && len(c.Key) > 0 }

// TLS returns the configuration of a client that trusts only the etcd CA. Its errors never contain parts of the key.
func (c Credentials) TLS() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("etcd client certificate and key: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, errors.New("the etcd CA file contains no certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots}, nil
}
