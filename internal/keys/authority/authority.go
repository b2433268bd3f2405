// Package authority reads and creates the signing keys of a cluster: the cluster CA, the CAs of etcd and of the front
// proxy, and the key pair for service-account tokens. Files and formats are those of kubeadm.
//
// A key is identified by the digest of its public key. Printing never shows private keys.
package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"kubeone/internal/model/observed"
)

// Files are the paths of the files of an authority on a control-plane host, relative to /etc/kubernetes/pki.
type Files struct {
	Public string // the trusted certificates or public keys, the signing one first
	Key    string // the private key
}

// FilesOf returns the files of the named authority, one of observed.Authorities().
func FilesOf(name string) Files {
	switch name {
	case observed.ClusterCA:
		return Files{"ca.crt", "ca.key"}
	case observed.EtcdCA:
		return Files{"etcd/ca.crt", "etcd/ca.key"}
	case observed.FrontProxyCA:
		return Files{"front-proxy-ca.crt", "front-proxy-ca.key"}
	case observed.ServiceAccounts:
		return Files{"sa.pub", "sa.key"}
	}
	return Files{}
}

// Next returns the name of the public file of the next key, in the directory of next keys.
func (f Files) Next() string { return flatName(f.Public) }

// NextKey returns the name of the private key file of the next key, in the same directory.
func (f Files) NextKey() string { return flatName(f.Key) }

func flatName(path string) string { return strings.ReplaceAll(path, "/", "-") }

const (
	certificateBlock = "CERTIFICATE"
	publicBlock      = "PUBLIC KEY"

	// maxKeys is the maximum number of keys in one file. A file with more is invalid.
	maxKeys = 16
)

// KeyID identifies a public key by its SubjectPublicKeyInfo in DER: "sha256:" and hex.
func KeyID(spki []byte) string {
	sum := sha256.Sum256(spki)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TokenKeyID returns the "kid" in the header of tokens signed by the key with that KeyID. It returns "" if key is not a
// KeyID.
func TokenKeyID(key string) string {
	digits, ok := strings.CutPrefix(key, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != sha256.Size {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Keys returns the KeyIDs of the certificates or public keys in a PEM file, in order. It returns nil if the file
// contains anything else.
func Keys(text []byte) []string {
	var out []string
	for _, b := range parseBlocks(text) {
		out = append(out, b.id)
	}
	return out
}

// Parse returns the state of an authority on a host. It is derived from its public file, the public file of its next
// key, and the recorded phases that have started on the host. Files that cannot be parsed are ignored.
func Parse(name string, public, next []byte, begun []string) observed.Authority {
	out := observed.Authority{Trusted: Keys(public)}
	if keys := Keys(next); len(keys) == 1 {
		out.Next = keys[0]
	}
	for _, line := range begun {
		what, phase, _ := strings.Cut(line, " ")
		if what == name && slices.Contains([]string{"learn", "use", "forget", observed.Used}, phase) {
			out.BegunPhase = phase
		}
	}
	return out
}

// RotationNoteForCopy returns the rotation note for a host to which the keys of another host are copied. note is the
// rotation note of the host that the keys are copied from. "forget" becomes "used": the new host must drop the old keys
// too, but has not started to. "used" is kept for the same reason. Other phases are left out, because the keys alone
// determine what the new host must still do.
func RotationNoteForCopy(note []byte) []byte {
	var out []byte
	for _, name := range observed.Authorities() {
		switch Parse(name, nil, nil, strings.Split(string(note), "\n")).BegunPhase {
		case "forget", observed.Used:
			out = append(out, name+" "+observed.Used+"\n"...)
		}
	}
	return out
}

// block is one certificate or public key.
type block struct {
	id  string
	pem []byte
}

// parseBlocks parses the certificates or public keys in a PEM file. It returns nil if the file contains anything else.
func parseBlocks(text []byte) []block {
	var out []block
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil || len(out) == maxKeys {
			return nil
		}
		spki := b.Bytes
		switch b.Type {
		case certificateBlock:
			c, err := x509.ParseCertificate(b.Bytes)
			if err != nil {
				return nil
			}
			spki = c.RawSubjectPublicKeyInfo
		case publicBlock:
			if _, err := x509.ParsePKIXPublicKey(b.Bytes); err != nil {
				return nil
			}
		default:
			return nil
		}
		out = append(out, block{KeyID(spki), pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes})})
	}
	return out
}

// Public holds certificates or public keys, in order, without duplicates.
type Public struct{ blocks []block }

// ErrFormat means that a file does not contain the certificates or public keys of an authority.
var ErrFormat = errors.New("not the certificates or public keys of an authority")

// ParsePublic parses a public file.
func ParsePublic(text []byte) (Public, error) {
	all := parseBlocks(text)
	if len(all) == 0 {
		return Public{}, ErrFormat
	}
	return Public{}.With(Public{all}), nil
}

// Text returns the file's content.
func (p Public) Text() []byte {
	var out []byte
	for _, b := range p.blocks {
		out = append(out, b.pem...)
	}
	return out
}

// Keys returns the KeyIDs, in order.
func (p Public) Keys() []string {
	out := make([]string, 0, len(p.blocks))
	for _, b := range p.blocks {
		out = append(out, b.id)
	}
	return out
}

// With returns p followed by the keys in more that are not in p.
func (p Public) With(more Public) Public {
	out := Public{append([]block(nil), p.blocks...)}
	for _, b := range more.blocks {
		if _, has := out.findBlock(b.id); !has {
			out.blocks = append(out.blocks, b)
		}
	}
	return out
}

// Only returns the given keys of p, in that order. It returns an error if one is not in p.
func (p Public) Only(keys ...string) (Public, error) {
	var out Public
	for _, key := range keys {
		b, has := p.findBlock(key)
		if !has {
			return Public{}, fmt.Errorf("the key %s is missing", key)
		}
		out.blocks = append(out.blocks, b)
	}
	return out, nil
}

func (p Public) findBlock(key string) (block, bool) {
	for _, b := range p.blocks {
		if b.id == key {
			return b, true
		}
	}
	return block{}, false
}

// Pair is a private key with its certificate or public key. It prints as the KeyID.
type Pair struct {
	Public Public
	key    []byte // PEM
}

// Own returns the certificate or public key in p that matches a private key.
func Own(p Public, key []byte) (Public, error) {
	b, _ := pem.Decode(key)
	if b == nil {
		return Public{}, errors.New("not a private key")
	}
	spki, err := marshalPublic(b)
	if err != nil {
		return Public{}, err
	}
	return p.Only(KeyID(spki))
}

// ParsePair parses a public file and a private key. The first key in the public file must match the private key; others
// are ignored.
func ParsePair(public, key []byte) (Pair, error) {
	p, err := ParsePublic(public)
	if err != nil {
		return Pair{}, err
	}
	own, err := Own(p, key)
	if err != nil {
		return Pair{}, err
	}
	if own.Keys()[0] != p.Keys()[0] {
		return Pair{}, errors.New("the private key does not match the certificate or public key")
	}
	b, _ := pem.Decode(key)
	return Pair{Public{p.blocks[:1]}, pem.EncodeToMemory(b)}, nil
}

// marshalPublic returns the SubjectPublicKeyInfo of the public key that belongs to a private key.
func marshalPublic(b *pem.Block) ([]byte, error) {
	signer, err := parseSigner(b)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKIXPublicKey(signer.Public())
}

func parseSigner(b *pem.Block) (crypto.Signer, error) {
	key, err := privateKey(b)
	if err != nil {
		return nil, errors.New("not a private key") // the error of the parser may quote the key
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("not a signing key")
	}
	return signer, nil
}

func privateKey(b *pem.Block) (any, error) {
	switch b.Type {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(b.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(b.Bytes)
}

// ID returns the KeyID of the pair.
func (p Pair) ID() string { return p.Public.Keys()[0] }

// KeyText returns the private key in PEM. It is secret.
func (p Pair) KeyText() []byte { return p.key }

// Format hides the private key from every verb.
func (p Pair) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "authority.Pair("+p.ID()+")") }

// MarshalText encodes only the KeyID.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.ID()), nil }

const (
	leastBits = 2048
	// backdated is how long before now a CA becomes valid, so that hosts with slow clocks accept it.
	backdated = 5 * time.Minute
)

// New creates the successor of the signing key in the given public file. It is of the same kind. For a CA, the
// certificate has the same name and the same period of validity, starting now.
func New(now time.Time, public []byte) (Pair, error) {
	old, err := ParsePublic(public)
	if err != nil {
		return Pair{}, err
	}
	first, _ := pem.Decode(old.blocks[0].pem)
	if first.Type == publicBlock {
		former, err := x509.ParsePKIXPublicKey(first.Bytes)
		if err != nil {
			return Pair{}, err
		}
		key, err := newKeyLike(former)
		if err != nil {
			return Pair{}, err
		}
		made, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			return Pair{}, err
		}
		return newPair(publicBlock, made, key)
	}
	former, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return Pair{}, err
	}
	key, err := newKeyLike(former.PublicKey)
	if err != nil {
		return Pair{}, err
	}
	made, err := successorCertificate(now, former, key)
	if err != nil {
		return Pair{}, err
	}
	return newPair(certificateBlock, made, key)
}

func newPair(kind string, public []byte, key crypto.Signer) (Pair, error) {
	private := &pem.Block{Type: "EC PRIVATE KEY"}
	var err error
	switch key := key.(type) {
	case *rsa.PrivateKey:
		private.Type, private.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)
	case *ecdsa.PrivateKey:
		private.Bytes, err = x509.MarshalECPrivateKey(key)
	}
	if err != nil {
		return Pair{}, err
	}
	return ParsePair(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: public}), pem.EncodeToMemory(private))
}

// newKeyLike creates a private key of the same kind as a public key.
func newKeyLike(former crypto.PublicKey) (crypto.Signer, error) {
	switch former := former.(type) {
	case *rsa.PublicKey:
		return rsa.GenerateKey(rand.Reader, max(leastBits, former.N.BitLen()))
	case *ecdsa.PublicKey:
		return ecdsa.GenerateKey(former.Curve, rand.Reader)
	}
	return nil, fmt.Errorf("kubeadm creates no keys of type %T", former)
}

// successorCertificate returns a CA certificate with the same name as the previous one. It contains a key identifier,
// so that chains use the right one of two CAs with the same name.
func successorCertificate(now time.Time, former *x509.Certificate, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: former.Subject.CommonName, Organization: former.Subject.Organization},
		DNSNames:     former.DNSNames,
		NotBefore:    now.Add(-backdated).UTC(), NotAfter: now.Add(former.NotAfter.Sub(former.NotBefore)).UTC(),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}
