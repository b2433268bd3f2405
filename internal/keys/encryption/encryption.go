// Package encryption reads, creates and writes the configuration with which API servers encrypt Secrets in etcd. The
// format is apiserver.config.k8s.io/v1, limited to what kubeone writes: it covers only Secrets, and each provider has
// one key or is identity. API servers encrypt with the first provider and decrypt with any of them.
//
// A configuration is identified by its digest, which is also the name of its file on hosts. A key is identified by name
// and digest. Keys are secret; printing and marshalling hide them.
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
	// Secretbox is the provider of newly created keys: XSalsa20 and Poly1305.
	Secretbox = "secretbox"

	keySize = 32
	// longest is the maximum size of a configuration, in bytes. It is enough for many more keys than are ever used.
	longest = 64 << 10
)

// Key is a provider in a configuration. For Identity it has only a name.
type Key struct {
	Provider, Name string
	secret         string // base64
}

// IdentityKey returns the provider that does not encrypt.
func IdentityKey() Key { return Key{Provider: Identity, Name: Identity} }

// NewKey creates a key with that name from a source of random bytes.
func NewKey(name string, random io.Reader) (Key, error) {
	if !keyName().MatchString(name) {
		return Key{}, fmt.Errorf("%q is not a valid key name", name)
	}
	raw := make([]byte, keySize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return Key{Secretbox, name, base64.StdEncoding.EncodeToString(raw)}, nil
}

// Digest returns the sha256 (hex) of a key, or "" for Identity.
func (k Key) Digest() string {
	if k.Provider == Identity {
		return ""
	}
	return digestOf(k.secret)
}

// Same reports whether the keys are equal.
func (k Key) Same(other Key) bool { return k == other }

// String returns the key's name.
func (k Key) String() string { return k.Name }

// Format hides the secret from every verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "encryption.Key("+k.Name+")") }

// Config is a configuration: its providers, the one that encrypts first.
type Config []Key

// ErrFormat means that a configuration is not one that kubeone writes.
var ErrFormat = errors.New("not a configuration of encryption at rest as kubeone writes it")

// keyName matches a valid key name. The name precedes each value in etcd, followed by a colon, so it must not contain
// one.
var keyName = pattern.Lazy(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// document is the format of a configuration.
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

// Parse parses a configuration. Its errors never contain parts of the text.
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

// Text returns the content of the configuration file. Its layout is always the same, because scripts read it line by
// line.
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

// Digest returns the sha256 (hex) of the configuration file.
func (c Config) Digest() string { return digestOf(string(c.Text())) }

// Names returns the names of the providers, in order.
func (c Config) Names() []string {
	out := make([]string, 0, len(c))
	for _, k := range c {
		out = append(out, k.Name)
	}
	return out
}

// Find returns the provider with that name; nil if there is none.
func (c Config) Find(name string) *Key {
	for i := range c {
		if c[i].Name == name {
			return &c[i]
		}
	}
	return nil
}

// DifferentKeysError means that two hosts have different keys with the same name.
type DifferentKeysError struct {
	Name  string
	Hosts [2]string
}

// Error names the hosts and the key.
func (e *DifferentKeysError) Error() string {
	return fmt.Sprintf("%s and %s have different keys named %s", e.Hosts[0], e.Hosts[1], e.Name)
}

// Keyring holds the keys of several hosts.
type Keyring struct {
	keys  map[string]Key    // by name
	owner map[string]string // by name, the host it came from
}

// Add adds the keys of a host. If a different key with the same name is known, it returns a *DifferentKeysError.
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

// Has reports whether a key with that name is known.
func (r *Keyring) Has(name string) bool {
	_, ok := r.keys[name]
	return ok || name == Identity
}

// Config returns a configuration with the named providers, in that order. It returns an error if one is not known.
func (r *Keyring) Config(names []string) (Config, error) {
	var out Config
	for _, name := range names {
		k, ok := r.keys[name]
		switch {
		case name == Identity:
			k = IdentityKey()
		case !ok:
			return nil, fmt.Errorf("no control-plane host has the key %s, which may encrypt Secrets", name)
		}
		out = append(out, k)
	}
	return out, nil
}

func digestOf(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
