package observed

import "slices"

// Encryption is how a control-plane host's API server stores Secrets in etcd: by which configurations of encryption at
// rest. Of keys there are digests alone.
type Encryption struct {
	// Running are the configurations of the API servers that run on the host, by their command lines: one, or none
	// where nothing runs; two for the moment in which one ends and the next one begins.
	Running []EncryptionConfig `json:"running,omitempty"`
	// Next is the one with which the API server starts next.
	Next EncryptionConfig `json:"next"`
	// Lost says that its file is not there, or is not what its name says: the API server would not start.
	Lost bool `json:"lost,omitempty"`
	// Foreign is where the configuration is, if it is none of ours.
	Foreign string `json:"foreign,omitempty"`
}

// EncryptionConfig is a configuration. The zero value is that of an API server which is told nothing: identity.
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

// Same reports whether it is the same configuration.
func (c EncryptionConfig) Same(other EncryptionConfig) bool {
	return c.Digest == other.Digest && slices.Equal(c.Providers, other.Providers)
}

// Settled reports whether what runs is what starts next.
func (e *Encryption) Settled() bool {
	return len(e.Running) == 1 && e.Running[0].Digest == e.Next.Digest && !e.Lost
}
