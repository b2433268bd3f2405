package sshconfig

import (
	"strings"
	"testing"

	"kubeone/internal/host"
)

// FuzzResolve: for every answer of ssh, a target is either refused or resolved to an address that can be dialled,
// through a finite chain of bastions.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"", "user root\nport 2222\n", "port -1\n", "hostname 10.0.0.1\nproxyjump bastion\n", "proxyjump cp-1\n",
		"stricthostkeychecking accept-new\nhostkeyalias %h\nrevokedhostkeys ~/.ssh/%k\n",
		"globalknownhostsfile none\nuserknownhostsfile ~/a /b/%%h ${HOME}/c\nhostkeyalgorithms ssh-ed25519\n",
		"proxyjump u@[::1]:22,b:70000\n", "identityfile ~/%u%h%%\nuserknownhostsfile none\n", "port\nhostname\n",
		"identityfile /kubeone/not-set\nciphers \nproxycommand none\n", "hostname a b\n",
	} {
		f.Add(seed, "cp-1")
	}
	f.Fuzz(func(t *testing.T, text, address string) {
		about := parseAnswer(text)
		got, err := resolution{
			opts: Options{HomeDir: "/home/me", SystemDir: "/etc/ssh", Getenv: func(string) string { return "" }},
			ask: func(alias string) (answer, answer, error) {
				if strings.HasPrefix(alias, "b") {
					return answer{}, answer{}, nil
				}
				return about, answer{}, nil
			},
			warn: func(string, string) {},
		}.resolveTarget(host.Target{Address: address}, 0)
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
