package pool

import (
	_ "embed"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Scripts of the pool. Each documents its arguments in its first line.
var (
	//go:embed sh/hostkeys.sh
	hostKeysScript string
	//go:embed sh/authorize.sh
	authorizeScript string
	//go:embed sh/revoke.sh
	revokeScript string
)

// Options of the key in authorized_keys. On hosts it may run commands without a terminal or tunnels. On bastions it may
// only open tunnels.
const (
	onHosts    = "restrict"
	onBastions = `restrict,port-forwarding,command="false"`
)

func authorizedKeysLine(options string, key ssh.PublicKey) string {
	return options + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + keyComment
}

// encodeKey returns the base64 part of a key's line in authorized_keys.
func encodeKey(key ssh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Marshal()) }
