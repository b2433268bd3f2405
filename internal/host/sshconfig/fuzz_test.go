package sshconfig

import (
	"os"
	"path/filepath"
	"testing"

	"kubeone/internal/host"
)

// FuzzResolve: whatever the operator's SSH configuration says, a target is resolved to something that can be dialled,
// by a chain of bastions that ends, or it is refused.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"", "Host *\n  User root\n  Port 2222\n", "Host\tcp-1\nPort -1\n", "Include /etc/passwd\n",
		"Host cp-1\n  HostName 10.0.0.1\n  ProxyJump bastion\nHost bastion\n  HostName %h.example.com\n",
		"Host a\nProxyJump a\n", "Match exec \"true\"\n  User x\nMatch all\n  User y\n",
		"Host *\n  StrictHostKeyChecking accept-new\n  HostKeyAlias %h\n  RevokedHostKeys ~/.ssh/%k\n",
		"GlobalKnownHostsFile none\nUserKnownHostsFile ~/a /b/%%h ${HOME}/c\nHostKeyAlgorithms -ssh-*\n",
		"Match final all\nHostKeyAlgorithms ssh-ed25519,[\nMatch exec \"true\"\nRevokedHostKeys /etc/revoked\n",
		"Include config\nInclude \"~/.ssh/*\" /dev/*\nCheckHostIP yes\n",
		"Host *\n  ProxyJump u@[::1]:22,b:70000\n", "Host *\nIdentityFile ~/%u%h%%\nUserKnownHostsFile none\n",
	} {
		f.Add([]byte(seed), "cp-1")
	}
	f.Fuzz(func(t *testing.T, text []byte, address string) {
		home := t.TempDir()
		path := filepath.Join(home, "config")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := New(Options{
			Path: path, HomeDir: home, SystemDir: home,
			Getenv: func(string) string { return "" }, Warn: func(string) {},
		}).Resolve(host.Target{Address: address})
		if err != nil {
			return
		}
		hops := 0
		for r := &got; r != nil; r = r.Via {
			if hops++; hops > maxHops+1 || r.Address == "" || r.User == "" || r.Port < 1 || r.Port > 65535 {
				t.Fatalf("%q resolves %q to %+v, hop %d", text, address, *r, hops)
			}
		}
	})
}
