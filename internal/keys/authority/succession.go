package authority

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
)

// Succession is the file, below /etc/kubernetes/pki, in which each of the cluster's CAs vouches for the one that has
// followed it: whoever knows the cluster by a former CA learns from it by which to know it now.
const Succession = "ca-succession.crt"

const serialLength = 16 // bytes, of the twenty that a serial number may have

// Vouch is the certificate, in PEM, by which a CA vouches for the one that is to follow it: the follower's, signed by
// the former one, and valid as long as that is. Of the same pairs it is always the same.
func Vouch(follower, former Pair) ([]byte, error) {
	next, err := certificateOf(follower.Public)
	if err != nil {
		return nil, err
	}
	parent, err := certificateOf(former.Public)
	if err != nil {
		return nil, err
	}
	b, _ := pem.Decode(former.key)
	if b == nil {
		return nil, errors.New("not a private key")
	}
	signer, err := signerOf(b)
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

func certificateOf(p Public) (*x509.Certificate, error) {
	b, _ := pem.Decode(p.Text())
	if b == nil || b.Type != certificateBlock {
		return nil, ErrFormat
	}
	return x509.ParseCertificate(b.Bytes)
}

// Followers are the KeyIDs of a CA that is known by its KeyID, and of those for which it vouches by way of any number
// of others, as the file says. Its signatures are checked, and not its dates: a pin has none either. A file that
// cannot be read vouches for nobody.
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

// Succeeded is the succession of a cluster whose CA is followed by another one: what it was, the former CA's own
// certificate, and its word for the follower. The latest come last; of many, the oldest are dropped.
func Succeeded(succession []byte, former Public, vouched []byte) []byte {
	all := append(parseBlocks(succession), parseBlocks(former.Text())...)
	all = append(all, parseBlocks(vouched)...)
	var out []byte
	for i, b := range all {
		if len(all)-i <= mostKeys {
			out = append(out, b.pem...)
		}
	}
	return out
}

// Known reports whether all certificates of a file are of CAs that are known by a KeyID, or follow such a one.
func Known(known string, file, succession []byte) bool {
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
