package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
)

// CredentialFiles are the files with credentials for registries and proxies as the caller has them. What a host has is
// compared with them without leaving the host: it tells the digest of a nonce and the file, and the nonce is of this
// run alone, so that what it tells helps nobody later to guess a password.
type CredentialFiles struct {
	// Content is what the hosts are to have, by path.
	Content map[string]string
	// Of says whose credentials a file of that path has, and whether the caller knows what the hosts are to have of
	// them; "" for a file that is none of those.
	Of func(path string) (of string, known bool)
	// Kept reports whether a Secret, nil where there is none, holds what the hosts of Machines are to have.
	Kept func(secret map[string][]byte) bool
}

// credentialDigest is what a host says of one file.
type credentialDigest struct{ sum, mode string }

const (
	mostCredentials = 512
	onlyForRoot     = "600"
)

var saltedFile = pattern.Lazy(`^([0-9a-f]{64}) ([0-7]{3,4}) (/etc/[0-9A-Za-z._:%/-]{1,320})$`)

// credentialDigests are what the host says of its files with credentials, by path; nil where it does not say.
func credentialDigests(l lines) map[string]credentialDigest {
	if !l.has("salted", "yes") || l.one("uid") != "0" {
		return nil
	}
	out := map[string]credentialDigest{}
	for _, text := range l["salted"] {
		if m := saltedFile().FindStringSubmatch(text); m != nil && len(out) < mostCredentials {
			out[m[3]] = credentialDigest{sum: m[1], mode: m[2]}
		}
	}
	return out
}

// compare returns the credentials that are not as the caller has them, sorted by path. Of a host that does not say what
// it has nothing is known.
func (c *CredentialFiles) compare(nonce string, has map[string]credentialDigest) []observed.Credential {
	if c == nil || has == nil {
		return nil
	}
	paths := slices.Collect(maps.Keys(c.Content))
	for path := range has {
		if _, wanted := c.Content[path]; !wanted {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var out []observed.Credential
	for _, path := range paths {
		of, known := c.Of(path)
		content, wanted := c.Content[path]
		is := credentialState(known, wanted, has[path], nonce+content)
		if of != "" && is != "" {
			out = append(out, observed.Credential{Of: of, Is: is})
		}
	}
	return out
}

// credentialState compares one file; "" is the same.
func credentialState(known, wanted bool, has credentialDigest, salted string) observed.CredentialState {
	sum := sha256.Sum256([]byte(salted))
	switch {
	case !known:
		return observed.CredentialLeft
	case !wanted:
		return observed.CredentialExtra
	case has.sum == "":
		return observed.CredentialMissing
	case has.sum != hex.EncodeToString(sum[:]) || has.mode != onlyForRoot:
		return observed.CredentialOther
	}
	return ""
}
