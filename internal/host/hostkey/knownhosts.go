package hostkey

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the format of hashed known_hosts entries
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host/pubkey"
)

// A knownKey is one line of a known_hosts file (format: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
//
// The parser in golang.org/x/crypto is not sufficient: it refuses the whole file if one line is unknown, does not
// report which algorithms to request, and treats the key of a certificate authority as the key of a host.
type knownKey struct {
	patterns []string // normalized: "host", "[host]:port", with * and ?; or one "|1|salt|hash"
	key      ssh.PublicKey
	marker   string   // "", certAuthority, revoked
	replaces []string // fingerprints of keys that are no longer valid at this address; only in the record file
	where    string
}

// The markers of lines. Lines with other markers are skipped.
const (
	certAuthority = "cert-authority"
	revoked       = "revoked"
)

// A knownFile is a known_hosts file. Entries without wildcards are found by name.
type knownFile struct {
	byName  map[string][]*knownKey
	special []*knownKey // hashed, wildcards
	revoked []*knownKey
}

// readKnownHosts reads a file; a missing file is empty. As in ssh, unknown lines are skipped.
func readKnownHosts(path string) (*knownFile, error) {
	f := &knownFile{byName: map[string][]*knownKey{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read known hosts: %w", err)
	}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		f.parseLine(scanner.Bytes(), fmt.Sprintf("%s:%d", path, n))
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read known hosts %s: %w", path, err)
	}
	return f, nil
}

func (f *knownFile) parseLine(line []byte, where string) {
	marker, patterns, key, comment, _, err := ssh.ParseKnownHosts(line)
	if err != nil || marker != "" && marker != certAuthority && marker != revoked {
		return
	}
	f.addKey(&knownKey{patterns: patterns, key: key, marker: marker, replaces: replacedBy(comment), where: where})
}

func (f *knownFile) addKey(k *knownKey) {
	switch {
	case k.marker == revoked:
		f.revoked = append(f.revoked, k)
	case strings.ContainsAny(strings.Join(k.patterns, ""), "*?!|"):
		f.special = append(f.special, k)
	default:
		for _, p := range k.patterns {
			name := knownhosts.Normalize(strings.ToLower(p))
			f.byName[name] = append(f.byName[name], k)
		}
	}
}

// lookupKeys returns the keys and authorities known for an address, "host:port".
func (f *knownFile) lookupKeys(addr string) []*knownKey {
	name := knownhosts.Normalize(addr)
	found := append([]*knownKey(nil), f.byName[name]...)
	for _, k := range f.special {
		if k.matchesHost(addr, name) {
			found = append(found, k)
		}
	}
	return found
}

// revokingLine returns the line that revokes a key, or the authority that signed it, for an address, or nil if there is
// none. A line without a port applies to all ports of the host.
func (f *knownFile) revokingLine(addr string, key ssh.PublicKey) *knownKey {
	host, _, _ := net.SplitHostPort(addr)
	anyPort := net.JoinHostPort(host, "22")
	for _, k := range f.revoked {
		if k.isIn(key) && (k.matchesHost(addr, knownhosts.Normalize(addr)) ||
			k.matchesHost(anyPort, knownhosts.Normalize(anyPort))) {
			return k
		}
	}
	return nil
}

// isIn reports whether a key is k, a certificate for k, or a certificate signed by k.
func (k *knownKey) isIn(key ssh.PublicKey) bool {
	cert, certified := key.(*ssh.Certificate)
	return pubkey.Equal(k.key, pubkey.Plain(key)) || certified && pubkey.Equal(k.key, cert.SignatureKey)
}

func (k *knownKey) matchesHost(addr, name string) bool {
	if strings.HasPrefix(k.patterns[0], "|") {
		return matchesHash(k.patterns[0], name)
	}
	host, port, _ := net.SplitHostPort(addr)
	matched := false
	for _, p := range k.patterns {
		p, not := strings.CutPrefix(strings.ToLower(p), "!")
		if !matchesPattern(p, host, port) {
			continue
		}
		if not {
			return false
		}
		matched = true
	}
	return matched
}

func matchesPattern(pattern, host, port string) bool {
	patternHost, patternPort := pattern, "22"
	if strings.HasPrefix(pattern, "[") {
		if h, p, err := net.SplitHostPort(pattern); err == nil {
			patternHost, patternPort = h, p
		}
	}
	return matchWildcard(patternPort, port) && matchWildcard(patternHost, host)
}

// matchWildcard reports whether s matches a pattern in which * and ? match any characters, including dots.
func matchWildcard(pattern, s string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return sameLength(pattern, s)
	}
	if len(s) < star || !sameLength(pattern[:star], s[:star]) {
		return false
	}
	pattern, s = pattern[star+1:], s[star:]
	for i := range len(s) + 1 {
		if matchWildcard(pattern, s[i:]) {
			return true
		}
	}
	return false
}

func sameLength(pattern, s string) bool {
	if len(pattern) != len(s) {
		return false
	}
	for i := range len(s) {
		if pattern[i] != '?' && pattern[i] != s[i] {
			return false
		}
	}
	return true
}

// matchesHash reports whether a name matches a hashed one, "|1|salt|HMAC-SHA1(salt, name)".
func matchesHash(entry, name string) bool {
	parts := strings.Split(entry, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, err1 := base64.StdEncoding.DecodeString(parts[2])
	want, err2 := base64.StdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}
