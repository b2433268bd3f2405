package pool

import (
	_ "embed"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Scripts that run on pool hosts. The first line of each documents its arguments.
var (
	//go:embed sh/hostkeys.sh
	hostKeysScript string
	//go:embed sh/authorize.sh
	authorizeScript string
	//go:embed sh/revoke.sh
	revokeScript string
)

// Options of the key in authorized_keys. On hosts, the key can run commands, without a terminal or tunnels. On
// bastions, it can only open tunnels.
const (
	onHosts    = "restrict"
	onBastions = `restrict,port-forwarding,command="false"`
)

func authorizedKeysLine(options string, key ssh.PublicKey) string {
	return options + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + keyComment
}

// encodeKey returns the base64 part of the authorized_keys line of a key.
func encodeKey(key ssh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Marshal()) }
