package pool

import (
	_ "embed"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The scripts of the pool, each with its arguments at its beginning.
var (
	//go:embed sh/hostkeys.sh
	hostKeysScript string
	//go:embed sh/authorize.sh
	authorizeScript string
	//go:embed sh/revoke.sh
	revokeScript string
)

// What a key may do, as authorized_keys says it: run commands on hosts, without a terminal and without tunnels; and on
// bastions, open tunnels and nothing else.
const (
	onHosts    = "restrict"
	onBastions = `restrict,port-forwarding,command="false"`
)

// authorizedKeysLine is the line of authorized_keys for a key.
func authorizedKeysLine(options string, key ssh.PublicKey) string {
	return options + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + keyComment
}

// bodyOf is by what a key is found in a file.
func bodyOf(key ssh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Marshal()) }
