package record

import (
	"encoding/base64"
	"strings"

	"kubeone/internal/text/pattern"
)

// privateKey is the beginning of every PEM private key, however it is encrypted.
var privateKey = pattern.Lazy(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)

// encoded is text that may be base64 of something as long as the shortest PEM heading.
var encoded = pattern.Lazy(`[A-Za-z0-9+/_-]{28,}`)

// nesting is how often a key may be wrapped in base64: a kubeconfig inside a Secret wraps it twice.
const nesting = 3

// holdsPrivateKey reports whether a text holds a PEM private key, plain or in base64 as in a kubeconfig or a Secret. It
// is the last line of defence: what is saved should be without secrets long before.
func holdsPrivateKey(text string) bool { return privateKeyWithin(text, nesting) }

func privateKeyWithin(text string, depth int) bool {
	if privateKey().MatchString(text) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, run := range encoded().FindAllString(text, -1) {
		plain, _ := base64.RawStdEncoding.DecodeString(standardBase64(run)) // what precedes an error was decoded
		if privateKeyWithin(string(plain), depth-1) {
			return true
		}
	}
	return false
}

// standardBase64 turns the URL alphabet into the usual one.
func standardBase64(s string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(s) }
