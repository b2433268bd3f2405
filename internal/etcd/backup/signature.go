package backup

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"kubeone/internal/keys/authority"
)

// SignatureName is the part with the signature of the metadata, and so of every other part, by the cluster CA. It
// proves the origin of a backup: everyone can encrypt to the recipients, because their keys are public, but only
// control-plane hosts have the key of the CA.
const SignatureName = "metadata.sig"

// Errors about the origin of a backup, for errors.Is.
var (
	ErrUnsigned   = errors.New("it is not signed, so its origin is unknown")
	ErrForged     = errors.New("its signature was not made by the CA in it")
	ErrCAMismatch = errors.New("it belongs to another cluster: its CA does not match the known CA")
	ErrUnknownCA  = errors.New("it is signed, but the cluster CA is not known on this machine: pass its certificate " +
		"with --ca-file")
)

// signedBytes returns the bytes to sign: a prefix, so that the signature is valid only for backups, and the metadata.
func signedBytes(metadata []byte) []byte {
	return append([]byte("kubeone backup metadata, format 2\n"), metadata...)
}

// signMetadata signs the metadata with the key of the CA.
func signMetadata(metadata, key []byte) ([]byte, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("sign the backup with the key of the cluster CA: %w", err)
	}
	if _, ok := signer.(ed25519.PrivateKey); ok {
		return signer.Sign(rand.Reader, signedBytes(metadata), crypto.Hash(0))
	}
	sum := sha256.Sum256(signedBytes(metadata))
	return signer.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// parseKey parses the private key of a CA in the formats of kubeadm and openssl.
func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not a private key in a known format")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// VerifySignature returns nil if the backup is signed by a CA with one of the known hashes (from CAHash), or by a
// successor of such a CA. Empty hashes are ignored. Otherwise the error wraps ErrUnsigned, ErrForged, ErrCAMismatch or
// ErrUnknownCA.
func (a *Archive) VerifySignature(known ...string) error {
	known = slices.DeleteFunc(slices.Clone(known), func(hash string) bool { return hash == "" })
	if err := a.checkSignature(known); err != nil {
		return fmt.Errorf("backup %s: %w", a.path, err)
	}
	return nil
}

// followsKnownCA reports whether a CA is known or is a successor of a known one.
func (a *Archive) followsKnownCA(known []string, ca string) bool {
	var succession []byte
	if _, ok := a.parts[PKIDir+SuccessionName]; ok {
		succession, _ = a.Read(PKIDir + SuccessionName) // if it cannot be read, there are no successors
	}
	return slices.ContainsFunc(known, func(k string) bool {
		return slices.Contains(authority.Followers(k, succession), ca)
	})
}

func (a *Archive) checkSignature(known []string) error {
	signature, err := a.Read(SignatureName)
	if err != nil {
		return ErrUnsigned
	}
	text, err := a.Read(PKIDir + "ca.crt")
	if err != nil {
		return err
	}
	hash, err := CAHash(text)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("the cluster CA: %w", err)
	}
	metadata, err := a.Read(MetadataName)
	if err != nil {
		return err
	}
	algorithm := map[x509.PublicKeyAlgorithm]x509.SignatureAlgorithm{
		x509.RSA: x509.SHA256WithRSA, x509.ECDSA: x509.ECDSAWithSHA256, x509.Ed25519: x509.PureEd25519,
	}[ca.PublicKeyAlgorithm]
	switch {
	case ca.CheckSignature(algorithm, signedBytes(metadata), signature) != nil:
		return ErrForged
	case len(known) == 0:
		return ErrUnknownCA
	case !a.followsKnownCA(known, hash):
		return fmt.Errorf("%w (expected %s, found %s)", ErrCAMismatch, known[0], hash)
	}
	return nil
}
