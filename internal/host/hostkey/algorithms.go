package hostkey

import (
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Algorithms returns the host key algorithms to request from a machine, in order. Those of its known keys come first,
// so that a machine with several keys uses a known one. The other allowed ones follow, so that a machine without a
// known key fails with a clear error and not in the handshake. Certificates are requested only if an authority is
// known.
func (h *Verifier) Algorithms(p Peer) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, authority := pinnedKeys(p.Pinned), false
	if len(own) == 0 {
		known, _ := h.knownKeys(p, nil) // Verify reports the error
		own, authority = known.own, len(known.authorities) > 0
		if m := h.met[p.Address]; m != nil {
			own = append(own, &knownKey{key: m.contact.Key})
		}
	}
	var first, rest []string
	for _, a := range ssh.SupportedAlgorithms().HostKeys {
		isOwn := slices.ContainsFunc(own, func(k *knownKey) bool { return k.key.Type() == keyFormat(a) })
		switch {
		case p.Algorithms != nil && !slices.Contains(p.Algorithms, a):
		case isCertificate(a) && authority, !isCertificate(a) && isOwn:
			first = append(first, a)
		case !isCertificate(a):
			rest = append(rest, a)
		}
	}
	return append(first, rest...)
}

func isCertificate(algorithm string) bool {
	return strings.HasSuffix(algorithm, "-cert-v01@openssh.com")
}

// keyFormat returns the key type that an algorithm uses.
func keyFormat(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}
