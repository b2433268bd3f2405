package backup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
)

// ParseRecipients parses age public keys ("age1…") and drops duplicates. Without any, it returns ErrNoRecipient.
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	var out []age.Recipient
	seen := map[string]bool{}
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if strings.HasPrefix(strings.ToUpper(key), "AGE-SECRET-KEY-") {
			return nil,
				errors.New("a recipient is a private key; give the public one, which age-keygen -y prints for it")
		}
		r, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Errorf("recipient %q is not an age public key (age-keygen prints it: age1…)", key)
		}
		out = append(out, r...)
	}
	if len(out) == 0 {
		return nil, ErrNoRecipient
	}
	return out, nil
}

// ReadIdentities reads the private keys in a file written by age-keygen. Its errors never contain parts of the keys.
func ReadIdentities(path string) ([]age.Identity, error) {
	text, err := os.ReadFile(path) // #nosec G304 -- the operator names it
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(text), "age-encryption.org/") || strings.HasPrefix(string(text), "-----BEGIN AGE") {
		return nil, fmt.Errorf("identity file %s is itself encrypted; decrypt it first: age -d %s", path, path)
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("identity file %s: %w; it should be one that age-keygen wrote", path, err)
	}
	return identities, nil
}
