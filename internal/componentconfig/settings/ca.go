package settings

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// certificateFingerprints returns a line for each certificate in a bundle, with its fingerprint and subject.
func certificateFingerprints(bundle string) string {
	var b strings.Builder
	rest := []byte(bundle)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		sum := sha256.Sum256(block.Bytes)
		b.WriteString("sha256:" + hex.EncodeToString(sum[:]))
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			b.WriteString(" " + c.Subject.String())
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 && strings.TrimSpace(bundle) != "" {
		return "no certificate\n"
	}
	return b.String()
}
