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

// SignatureName is the part that vouches for the metadata, and so for every other part: made with the key of the
// cluster's CA, which only its control-plane hosts have. Whoever can merely encrypt to the recipients, whose keys are
// public, cannot make it.
const SignatureName = "metadata.sig"

// What can be wrong with a backup's origin, for errors.Is.
var (
	ErrUnsigned  = errors.New("nothing vouches for it: it is not signed")
	ErrForged    = errors.New("its signature is not that of the CA in it")
	ErrOtherCA   = errors.New("it is of another cluster: the CA in it is not the known one")
	ErrUnknownCA = errors.New("it is signed, but nobody here knows the cluster's CA: give its certificate with " +
		"--ca-file")
)

// signedBytes is what is signed: the metadata, after words that make the signature one of a backup and of nothing else.
func signedBytes(metadata []byte) []byte {
	return append([]byte("kubeone backup metadata, format 2\n"), metadata...)
}

// signMetadata signs the metadata with the key of the CA.
func signMetadata(metadata, key []byte) ([]byte, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("sign the backup with the key of the cluster's CA: %w", err)
	}
	if _, ok := signer.(ed25519.PrivateKey); ok {
		return signer.Sign(rand.Reader, signedBytes(metadata), crypto.Hash(0))
	}
	sum := sha256.Sum256(signedBytes(metadata))
	return signer.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// parseKey reads a CA's key in the forms in which kubeadm and openssl write one.
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
		return nil, errors.New("it is no private key of a known form")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// Authentic checks that the cluster's CA has signed the backup, known by any of the hashes given (as CAHash makes
// them), or one that has followed a known one by its own word; "" are not counted. The error is one of this package's
// for the origin.
func (a *Archive) Authentic(known ...string) error {
	known = slices.DeleteFunc(slices.Clone(known), func(hash string) bool { return hash == "" })
	if err := a.checkSignature(known); err != nil {
		return fmt.Errorf("backup %s: %w", a.path, err)
	}
	return nil
}

// followsKnownCA reports whether a CA is known, or vouched for by way of a known one.
func (a *Archive) followsKnownCA(known []string, ca string) bool {
	var succession []byte
	if _, ok := a.parts[PKIDir+SuccessionName]; ok {
		succession, _ = a.Read(PKIDir + SuccessionName) // one that cannot be read vouches for nobody
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
		return fmt.Errorf("%w (%s, and it has %s)", ErrOtherCA, known[0], hash)
	}
	return nil
}
