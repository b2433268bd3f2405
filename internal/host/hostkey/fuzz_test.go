package hostkey

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/testutil/sshtest"
)

// FuzzKnownHosts: a line that revokes a key counts, whatever precedes or follows it. Among an address's keys there is
// no line with a marker other than that of an authority.
func FuzzKnownHosts(f *testing.F) {
	signer, err := sshtest.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	key := signer.PublicKey()
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	for _, seed := range []string{
		"", "192.0.2.7 " + line, "@cert-authority * " + line, "@revoked [*]:22 " + line, "@other * " + line,
		"192.0.2.7 " + line + " replaces SHA256:a,SHA256:b", "|1|a|b " + line, "!*,192.0.2.? " + line,
		"* ssh-ed25519 AAAA",
		"[192.0.2.7]:* " + line, "@revoked\t*\t" + line, "*,[ " + line,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := &knownFile{byName: map[string][]*knownKey{}}
		for l := range bytes.Lines(text) {
			file.parseLine(l, "before")
		}
		file.parseLine([]byte("@revoked 192.0.2.* "+line), "revoked:1")
		for l := range bytes.Lines(text) {
			file.parseLine(l, "after")
		}
		if file.revokingLine("192.0.2.7:22", key) == nil {
			t.Errorf("%q unmakes a revocation", text)
		}
		for _, k := range file.lookupKeys("192.0.2.7:22") {
			if k.marker != "" && k.marker != certAuthority {
				t.Errorf("%q: a line marked %q counts as a key", text, k.marker)
			}
			replacedFingerprints([]*knownKey{k})
		}
	})
}

// FuzzRevocations: a list is either refused, or each of its lines except comments revokes a key.
func FuzzRevocations(f *testing.F) {
	signer, err := sshtest.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	line := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	for _, seed := range []string{
		"", line, "# a comment\n\n" + line, krlMagic, "x" + krlMagic, line + "garbage", "\r\n" + line, "no-pty " + line,
		"ssh-ed25519 AAAA",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseRevocations(text, "revoked")
		if err != nil {
			return
		}
		want := 0
		for l := range strings.SplitSeq(string(text), "\n") {
			if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
				want++
			}
		}
		if len(keys) != want {
			t.Errorf("%q: %d keys of %d lines", text, len(keys), want)
		}
	})
}
