// Package encryption reads, makes and writes the configuration by which an API server encrypts Secrets in etcd, in the
// format apiserver.config.k8s.io/v1, as far as this program makes one: it is about Secrets alone, and each provider has
// one key, or is identity. The first provider writes; all of them read.
//
// A configuration is known by its digest, which is also the name of its file on a host, and a key by its name and its
// digest. Keys themselves are secret: they show nothing of themselves when they are printed or marshalled.
package encryption

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kubeone/internal/text/pattern"

	"sigs.k8s.io/yaml"
)

const (
	// Identity is the name of the provider that does not encrypt.
	Identity = "identity"
	// Secretbox is the provider of the keys that are made here: XSalsa20 and Poly1305.
	Secretbox = "secretbox"

	keySize = 32
	// longest is how long a configuration may be, in bytes: there are never more than a few keys in one.
	longest = 64 << 10
)

// Key is a provider of a configuration. That of Identity has its name alone.
type Key struct {
	Provider, Name string
	secret         string // base64
}

// IdentityKey is the provider that does not encrypt.
func IdentityKey() Key { return Key{Provider: Identity, Name: Identity} }

// NewKey makes a key of that name from what the source of randomness gives.
func NewKey(name string, random io.Reader) (Key, error) {
	if !keyName().MatchString(name) {
		return Key{}, fmt.Errorf("%q is no name for a key", name)
	}
	raw := make([]byte, keySize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return Key{Secretbox, name, base64.StdEncoding.EncodeToString(raw)}, nil
}

// Digest is the sha256 (hex) of a key; "" of Identity.
func (k Key) Digest() string {
	if k.Provider == Identity {
		return ""
	}
	return digestOf(k.secret)
}

// Same reports whether the keys are one.
func (k Key) Same(other Key) bool { return k == other }

// String is the key's name.
func (k Key) String() string { return k.Name }

// Format hides the secret from every verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "encryption.Key("+k.Name+")") }

// Config is a configuration: its providers, the one that writes first.
type Config []Key

// ErrFormat means that a configuration is none that this program makes.
var ErrFormat = errors.New("not a configuration of encryption at rest as kubeone writes it")

// keyName is what a key may be called: it stands in front of each value in etcd, between colons.
var keyName = pattern.Lazy(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// document is the configuration's format.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Resources  []resourceRules `json:"resources"`
}

type resourceRules struct {
	Resources []string   `json:"resources"`
	Providers []provider `json:"providers"`
}

type provider struct {
	Identity  *struct{} `json:"identity,omitempty"`
	Secretbox *keys     `json:"secretbox,omitempty"`
}

type keys struct {
	Keys []key `json:"keys"`
}

type key struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

const (
	apiVersion = "apiserver.config.k8s.io/v1"
	kind       = "EncryptionConfiguration"
)

// Parse reads a configuration. Its error says nothing of what it read.
func Parse(text []byte) (Config, error) {
	var d document
	if len(text) > longest || yaml.UnmarshalStrict(text, &d) != nil {
		return nil, ErrFormat
	}
	if d.APIVersion != apiVersion || d.Kind != kind || len(d.Resources) != 1 ||
		!slices.Equal(d.Resources[0].Resources, []string{"secrets"}) {
		return nil, ErrFormat
	}
	var out Config
	for _, p := range d.Resources[0].Providers {
		k, err := p.readKey()
		if err != nil {
			return nil, err
		}
		if out.Find(k.Name) != nil {
			return nil, ErrFormat
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, ErrFormat
	}
	return out, nil
}

func (p provider) readKey() (Key, error) {
	switch {
	case p.Identity != nil && p.Secretbox == nil:
		return IdentityKey(), nil
	case p.Identity == nil && p.Secretbox != nil && len(p.Secretbox.Keys) == 1:
		k := p.Secretbox.Keys[0]
		raw, err := base64.StdEncoding.DecodeString(k.Secret)
		if err == nil && len(raw) == keySize && keyName().MatchString(k.Name) && k.Name != Identity {
			return Key{Secretbox, k.Name, k.Secret}, nil
		}
	}
	return Key{}, ErrFormat
}

// Text is the configuration as a file. Scripts read it line by line; it is always written in the same way.
func (c Config) Text() []byte {
	var b strings.Builder
	b.WriteString("apiVersion: " + apiVersion + "\nkind: " + kind + "\n" +
		"resources:\n- resources:\n  - secrets\n  providers:\n")
	for _, k := range c {
		if k.Provider == Identity {
			b.WriteString("  - identity: {}\n")
			continue
		}
		fmt.Fprintf(&b, "  - %s:\n      keys:\n      - name: %s\n        secret: %s\n", k.Provider, k.Name, k.secret)
	}
	return []byte(b.String())
}

// Digest is the sha256 (hex) of the configuration as a file.
func (c Config) Digest() string { return digestOf(string(c.Text())) }

// Names are the names of its providers, in order.
func (c Config) Names() []string {
	out := make([]string, 0, len(c))
	for _, k := range c {
		out = append(out, k.Name)
	}
	return out
}

// Find is the provider of that name, nil when there is none.
func (c Config) Find(name string) *Key {
	for i := range c {
		if c[i].Name == name {
			return &c[i]
		}
	}
	return nil
}

// DifferentKeysError means that two hosts have different keys of one name, by digests.
type DifferentKeysError struct {
	Name  string
	Hosts [2]string
}

// Error says which.
func (e *DifferentKeysError) Error() string {
	return fmt.Sprintf("%s and %s have different keys named %s", e.Hosts[0], e.Hosts[1], e.Name)
}

// Keyring is the keys of several hosts.
type Keyring struct {
	keys  map[string]Key    // by name
	owner map[string]string // by name, the host from which it is known
}

// Add takes what a host has. A key of which another host has a different one is an error, a *DifferentKeysError.
func (r *Keyring) Add(host string, c Config) error {
	if r.keys == nil {
		r.keys, r.owner = map[string]Key{}, map[string]string{}
	}
	for _, k := range c {
		if had, ok := r.keys[k.Name]; ok && !had.Same(k) {
			return &DifferentKeysError{k.Name, [2]string{r.owner[k.Name], host}}
		}
		if _, ok := r.keys[k.Name]; !ok {
			r.keys[k.Name], r.owner[k.Name] = k, host
		}
	}
	return nil
}

// Has reports whether a key of that name is known.
func (r *Keyring) Has(name string) bool {
	_, ok := r.keys[name]
	return ok || name == Identity
}

// Config is the configuration of the providers with these names, in order.
func (r *Keyring) Config(names []string) (Config, error) {
	var out Config
	for _, name := range names {
		k, ok := r.keys[name]
		switch {
		case name == Identity:
			k = IdentityKey()
		case !ok:
			return nil, fmt.Errorf("no control-plane host has the key %s, by which Secrets may be encrypted", name)
		}
		out = append(out, k)
	}
	return out, nil
}

func digestOf(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
