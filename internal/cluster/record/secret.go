package record

import (
	"encoding/base64"
	"strings"

	"kubeone/internal/text/pattern"
)

// privateKey matches the beginning of every PEM private key, encrypted or not.
var privateKey = pattern.Lazy(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)

// encoded matches text that may be the base64 form of at least the shortest PEM header.
var encoded = pattern.Lazy(`[A-Za-z0-9+/_-]{28,}`)

// nesting limits nested base64 layers. A kubeconfig in a Secret has two.
const maxNesting = 3

// holdsPrivateKey reports whether a text contains a PEM private key, in plain text or in base64 as in a kubeconfig or
// Secret. It is a last safeguard: callers must already have removed secrets.
func holdsPrivateKey(text string) bool { return privateKeyWithin(text, maxNesting) }

func privateKeyWithin(text string, depth int) bool {
	if privateKey().MatchString(text) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, run := range encoded().FindAllString(text, -1) {
		plain, _ := base64.RawStdEncoding.DecodeString(standardBase64(run)) // the part before an error is decoded
		if privateKeyWithin(string(plain), depth-1) {
			return true
		}
	}
	return false
}

// standardBase64 replaces the characters of the URL-safe alphabet with those of the standard one.
func standardBase64(s string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(s) }
