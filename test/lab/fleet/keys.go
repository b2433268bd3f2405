package fleet

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// writeKey creates a key pair, writes the private key with mode 0600, and returns the public key as a line of
// authorized_keys.
func writeKey(path, comment string) (string, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return "", fmt.Errorf("make an SSH key: %w", err)
	}
	wire, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("make an SSH key: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return "", fmt.Errorf("make an SSH key: %w", err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(wire))) + " " + comment, nil
}

// knownHosts returns the hosts' keys as lines of a known_hosts file.
func knownHosts(hosts []*Host) []byte {
	var text strings.Builder
	for _, host := range hosts {
		for _, key := range host.HostKeys {
			fmt.Fprintf(&text, "%s %s\n", host.Address, key)
		}
	}
	return []byte(text.String())
}

// WireKey returns the host's Ed25519 key in the SSH wire format as base64, as manifests pin it.
func (h *Host) WireKey() string {
	for _, key := range h.HostKeys {
		if wire, ok := strings.CutPrefix(key, ssh.KeyAlgoED25519+" "); ok {
			return wire
		}
	}
	return ""
}
