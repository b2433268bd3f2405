package observed

import "slices"

// Encryption is how a control-plane host's API server stores Secrets in etcd: its configurations of encryption at rest.
// Only digests of keys are here.
type Encryption struct {
	// Running holds the configurations of the host's running API servers, according to their command lines: one, none
	// if nothing runs, or briefly two while one replaces the other.
	Running []EncryptionConfig `json:"running,omitempty"`
	// Next is the configuration that the API server starts with next.
	Next EncryptionConfig `json:"next"`
	// Lost says that its file is missing or does not match its name: the API server would not start.
	Lost bool `json:"lost,omitempty"`
	// Foreign is the path of the configuration, if it is not kubeone's.
	Foreign string `json:"foreign,omitempty"`
}

// EncryptionConfig is a configuration. The zero value is an API server without one: identity.
type EncryptionConfig struct {
	Digest    string        `json:"digest,omitempty"`    // sha256 (hex) of its file; "" if there is none
	Providers []EncryptedBy `json:"providers,omitempty"` // the first one writes; nil if there is none, or it is lost
}

// EncryptedBy is a provider of a configuration.
type EncryptedBy struct {
	Name string `json:"name"`          // of its key; "identity" encrypts nothing
	Key  string `json:"key,omitempty"` // sha256 (hex) of the key
}

// Identity is the name of the provider that encrypts nothing.
const Identity = "identity"

// Names returns the names of the providers, in order: identity alone if there is no configuration.
func (c EncryptionConfig) Names() []string {
	if c.Digest == "" {
		return []string{Identity}
	}
	out := make([]string, 0, len(c.Providers))
	for _, p := range c.Providers {
		out = append(out, p.Name)
	}
	return out
}

// Same reports whether both are the same configuration.
func (c EncryptionConfig) Same(other EncryptionConfig) bool {
	return c.Digest == other.Digest && slices.Equal(c.Providers, other.Providers)
}

// Settled reports whether the running configuration is the next one.
func (e *Encryption) Settled() bool {
	return len(e.Running) == 1 && e.Running[0].Digest == e.Next.Digest && !e.Lost
}
