package hostkey

import (
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host/pubkey"
	"kubeone/internal/testutil/sshtest"
)

// TestKnownHostsAgreesWithXCrypto compares our reader with x/crypto's on input that both support.
func TestKnownHostsAgreesWithXCrypto(t *testing.T) {
	t.Parallel()
	var keys []ssh.PublicKey
	for range 3 {
		k, err := sshtest.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.PublicKey())
	}
	patterns := []string{"a.example.com", "*.example.com", "!a.example.com,*.example.com", "[a.example.com]:2222",
		"[*.example.com]:2222",
		"10.0.0.1", "10.0.0.?", "[fd00::1]:22", "fd00::1", "a.example.com,10.0.0.1",
		knownhosts.HashHostname("a.example.com"), knownhosts.HashHostname("[10.0.0.1]:2222"), "**.example.com", "*"}
	addresses := []string{"a.example.com:22", "b.example.com:22", "a.example.com:2222", "10.0.0.1:22", "10.0.0.1:2222",
		"10.0.0.10:22",
		"[fd00::1]:22", "example.com:22"}
	for _, pattern := range patterns {
		path := filepath.Join(t.TempDir(), "known_hosts")
		text := pattern + " " + string(ssh.MarshalAuthorizedKey(keys[0])) + "a.example.com " +
			string(ssh.MarshalAuthorizedKey(keys[1]))
		if err := appendPrivately(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		theirs, err := knownhosts.New(path)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := readKnownHosts(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range addresses {
			for i, key := range keys {
				want := theirs(addr, tcpAddr{}, key) == nil
				got := false
				for _, k := range ours.lookupKeys(addr) {
					got = got || pubkey.Equal(k.key, key)
				}
				if got != want {
					t.Errorf("%q, %s, key %d: got %v, want %v", pattern, addr, i, got, want)
				}
			}
		}
	}
}

type tcpAddr struct{}

func (tcpAddr) Network() string { return "tcp" }
func (tcpAddr) String() string  { return "192.0.2.1:22" }
