package authority

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
)

// Succession is the file, below /etc/kubernetes/pki, in which each of the cluster's CAs signs for its successor. A
// caller who knows the cluster by a former CA learns the present one from it.
const Succession = "ca-succession.crt"

const serialLength = 16 // bytes; a serial number may have twenty

// SignFollower returns a certificate of follower signed by former, in PEM, which expires with former. It returns the
// same certificate for the same pairs.
func SignFollower(follower, former Pair) ([]byte, error) {
	next, err := parseCertificate(follower.Public)
	if err != nil {
		return nil, err
	}
	parent, err := parseCertificate(former.Public)
	if err != nil {
		return nil, err
	}
	b, _ := pem.Decode(former.key)
	if b == nil {
		return nil, errors.New("not a private key")
	}
	signer, err := parseSigner(b)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(next.RawSubjectPublicKeyInfo)
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(digest[:serialLength]),
		Subject:      next.Subject, SubjectKeyId: next.SubjectKeyId,
		NotBefore: next.NotBefore, NotAfter: parent.NotAfter,
		KeyUsage:              next.KeyUsage,
		BasicConstraintsValid: true, IsCA: true,
	}
	made, err := x509.CreateCertificate(nil, template, parent, next.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: made}), nil
}

func parseCertificate(p Public) (*x509.Certificate, error) {
	b, _ := pem.Decode(p.Text())
	if b == nil || b.Type != certificateBlock {
		return nil, ErrFormat
	}
	return x509.ParseCertificate(b.Bytes)
}

// Followers returns the given KeyID and the KeyIDs of all its direct and indirect successors in the file. It verifies
// signatures but, as for pins, not dates. If the file cannot be parsed, there are no successors.
func Followers(known string, succession []byte) []string {
	var all []*x509.Certificate
	for _, b := range parseBlocks(succession) {
		block, _ := pem.Decode(b.pem)
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA {
			all = append(all, c)
		}
	}
	out, seen := []string{known}, map[string]bool{known: true}
	for i := 0; i < len(out); i++ {
		for _, parent := range all {
			if KeyID(parent.RawSubjectPublicKeyInfo) != out[i] {
				continue
			}
			for _, c := range all {
				id := KeyID(c.RawSubjectPublicKeyInfo)
				if !seen[id] && c.CheckSignatureFrom(parent) == nil {
					seen[id] = true
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// AddSuccession returns the succession file after another change of the CA. It adds the certificate of the former CA
// and the certificate that it signed for its follower. If there are more than maxKeys, the oldest are dropped.
func AddSuccession(succession []byte, former Public, vouched []byte) []byte {
	all := append(parseBlocks(succession), parseBlocks(former.Text())...)
	all = append(all, parseBlocks(vouched)...)
	var out []byte
	for i, b := range all {
		if len(all)-i <= maxKeys {
			out = append(out, b.pem...)
		}
	}
	return out
}

// IsKnown reports whether all certificates in a file are those of the CA with the known KeyID or of its successors.
func IsKnown(known string, file, succession []byte) bool {
	followers := map[string]bool{}
	for _, id := range Followers(known, succession) {
		followers[id] = true
	}
	keys := Keys(file)
	for _, key := range keys {
		if !followers[key] {
			return false
		}
	}
	return len(keys) > 0
}
