package probe

import (
	"path"
	"slices"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
)

// encryptionDir is where our configurations of encryption at rest are.
const encryptionDir = "/etc/kubernetes/encryption/"

// no is what the script says where there is no configuration.
const no = "none"

var (
	// encryptionPath is what the path of a configuration looks like, ours and others'.
	encryptionPath = pattern.Lazy(`^/[0-9A-Za-z._/-]{1,200}$`)
	// encryptionFile is the path of one of ours, and the digest of the file.
	encryptionFile = pattern.Lazy(`^/etc/kubernetes/encryption/([0-9a-f]{64})\.yaml ([0-9a-f]{64})  -$`)
	// encryptionKey is the path of one of ours, the name of a key in it, and the digest of the key.
	encryptionKey = pattern.Lazy(
		`^/etc/kubernetes/encryption/([0-9a-f]{64})\.yaml (identity|[a-z0-9][a-z0-9.-]{0,62}) (-|[0-9a-f]{64}  -)$`)
)

const (
	mostConfigurations = 16
	mostKeys           = 16 // of a configuration
)

// encryption is how the host's API server encrypts what it stores; nil where the host says nothing of that.
func encryption(l lines) *observed.Encryption {
	next := l.one("encryption-next")
	if next == "" {
		return nil
	}
	files := encryptionFiles(l)
	var out observed.Encryption
	for _, name := range append([]string{next, l.one("encryption-manifest")}, l["encryption-running"]...) {
		if foreign(name) {
			out.Foreign = name
			return &out
		}
	}
	config := func(name string) (c observed.EncryptionConfig, whole bool) {
		if name == no || name == "" {
			return observed.EncryptionConfig{}, true
		}
		c.Digest = strings.TrimSuffix(path.Base(name), ".yaml")
		c.Providers = files[c.Digest]
		return c, len(c.Providers) > 0
	}
	out.Next, _ = config(next)
	_, there := config(next)
	_, manifest := config(l.one("encryption-manifest"))
	out.Lost = !there || !manifest
	for _, name := range l["encryption-running"] {
		c, _ := config(name)
		again := func(have observed.EncryptionConfig) bool { return have.Digest == c.Digest }
		if len(out.Running) < mostConfigurations && !slices.ContainsFunc(out.Running, again) {
			out.Running = append(out.Running, c)
		}
	}
	return &out
}

// foreign reports whether the path is one of somebody else's configuration, or none at all.
func foreign(name string) bool {
	if name == no || name == "" {
		return false
	}
	digest, ours := strings.CutPrefix(name, encryptionDir)
	return !ours || !encryptionPath().MatchString(name) || len(strings.TrimSuffix(digest, ".yaml")) != 64
}

// encryptionFiles are the providers of our configurations that are what their names say, by digest.
func encryptionFiles(l lines) map[string][]observed.EncryptedBy {
	whole := map[string]bool{}
	for _, text := range l["encryption-file"] {
		m := encryptionFile().FindStringSubmatch(text)
		if len(m) == 0 || len(whole) == mostConfigurations {
			continue
		}
		if m[1] == m[2] {
			whole[m[1]] = true
		}
	}
	out := map[string][]observed.EncryptedBy{}
	for _, text := range l["encryption-key"] {
		m := encryptionKey().FindStringSubmatch(text)
		if len(m) == 0 {
			continue
		}
		if !whole[m[1]] || len(out[m[1]]) == mostKeys {
			continue
		}
		key, _, _ := strings.Cut(m[3], " ")
		if key == "-" {
			key = ""
		}
		out[m[1]] = append(out[m[1]], observed.EncryptedBy{Name: m[2], Key: key})
	}
	return out
}
