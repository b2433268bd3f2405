package hostkey

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

// krlMagic is at the start of an OpenSSH key revocation list (PROTOCOL.krl).
const krlMagic = "SSHKRL\n\x00"

// errKRL is the error for a list in a format that only OpenSSH supports.
var errKRL = errors.New("is a binary key revocation list (KRL), which is not supported: list the revoked " +
	"public keys in a text file, one a line, or as @revoked in known_hosts")

// readRevocations reads the file that RevokedHostKeys names. Unlike a known_hosts file, it must exist, and every line
// must be valid. Otherwise a revoked key could be accepted.
func readRevocations(path string) ([]*knownKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("RevokedHostKeys: %w", err)
	}
	return parseRevocations(text, path)
}

func parseRevocations(text []byte, path string) ([]*knownKey, error) {
	if bytes.HasPrefix(text, []byte(krlMagic)) {
		return nil, fmt.Errorf("RevokedHostKeys: %s %w", path, errKRL)
	}
	var out []*knownKey
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			return nil, fmt.Errorf("RevokedHostKeys: %s:%d is not a public key: %w", path, n, err)
		}
		out = append(out, &knownKey{key: key, marker: revoked, where: fmt.Sprintf("%s:%d", path, n)})
	}
	return out, nil
}
