// Package pubkey compares SSH public keys.
package pubkey

import (
	"bytes"

	"golang.org/x/crypto/ssh"
)

// Plain returns the key in a certificate, or the key itself if it is not a certificate.
func Plain(k ssh.PublicKey) ssh.PublicKey {
	if cert, ok := k.(*ssh.Certificate); ok {
		return cert.Key
	}
	return k
}

// Equal reports whether two keys are the same.
func Equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
