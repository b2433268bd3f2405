package sshpool_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/short"
	"kubeone/internal/testutil/sshtest"
)

// A trustee is a server, an operator's home and the system's directory, with files that SSH configurations refer to.
type trustee struct {
	server       *sshtest.Server
	home, system string
}

// newTrustee writes files whose names begin with "system/" to the system's directory and others to the home. In their
// texts, ADDR, OWN and OTHER are the server's address, its public key and another key; HOME and SYSTEM are the
// directories.
func newTrustee(t *testing.T, files map[string]string) trustee {
	t.Helper()
	short.Tool(t, "ssh")
	p := trustee{sshtest.Start(t, sshtest.Options{}), t.TempDir(), t.TempDir()}
	key := func(k ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) }
	texts := strings.NewReplacer("ADDR", knownhosts.Normalize(hostPort(p.server)), "OWN", key(p.server.HostKey()),
		"OTHER", key(newKey(t).PublicKey()), "HOME", p.home, "SYSTEM", p.system)
	for name, text := range files {
		path := filepath.Join(p.home, ".ssh", name)
		if rest, ok := strings.CutPrefix(name, "system/"); ok {
			path = filepath.Join(p.system, rest)
		}
		writeFile(t, path, texts.Replace(text))
	}
	return p
}

// try logs in under a policy.
func (p trustee) try(t *testing.T, o sshpool.Options) error {
	t.Helper()
	o.HomeDir, o.SystemDir = p.home, p.system
	pool := newPool(t, o)
	target := unpinned(t, p.server)
	if err := pool.Check(target); err != nil {
		return err
	}
	_, err := pool.Host(target).Run(testContext(t), host.Cmd{Script: ":"})
	return err
}

// Files and directives that make a host known to OpenSSH, or not. The policy accepts unknown keys.
func TestTrustAsInOpenSSH(t *testing.T) {
	t.Parallel()
	const known, revoked, config = "ADDR OWN\n", "@revoked * OWN\n", host.Config
	for name, c := range map[string]struct {
		files map[string]string
		want  host.Class // host.Other: accepted
		says  string
	}{
		"known to the system": {map[string]string{"config": "StrictHostKeyChecking yes\n",
			"system/ssh_known_hosts": known}, host.Other, ""},
		"known in the second file": {map[string]string{"config": "StrictHostKeyChecking yes\n",
			"known_hosts2": known}, host.Other, ""},
		"revoked by the system": {map[string]string{"known_hosts": known, "system/ssh_known_hosts": revoked},
			host.HostKey, "ssh_known_hosts:1"},
		"revoked by the system's second file": {map[string]string{"known_hosts": known,
			"system/ssh_known_hosts2": "\n" + revoked}, host.HostKey, "ssh_known_hosts2:2"},
		"changed for the system": {map[string]string{"system/ssh_known_hosts": "ADDR OTHER\n"}, host.HostKey,
			"has changed"},
		"one of several files": {map[string]string{"config": "UserKnownHostsFile /none HOME/.ssh/b\n" +
			"StrictHostKeyChecking yes\n", "b": known}, host.Other, ""},
		"a file by a variable that is not set": {map[string]string{"config": "UserKnownHostsFile ${NOTHING}/b\n"},
			config, "${NOTHING}"},
		"a file by a relative path": {map[string]string{"config": "UserKnownHostsFile x/b\n"},
			config, "x/b is not an absolute path"},
		"a file by a token that is not supported": {map[string]string{"config": "GlobalKnownHostsFile /%C\n"},
			config, "the token %C"},
		"a path that is two": {map[string]string{"config": "UserKnownHostsFile \"~/.ssh/my hosts\"\n"}, config,
			"hosts is not an absolute path"},
		"no files at all": {map[string]string{"config": "UserKnownHostsFile none\nGlobalKnownHostsFile none\n" +
			"StrictHostKeyChecking yes\n", "known_hosts": known, "system/ssh_known_hosts": known},
			host.HostKey, "is unknown"},
		"another system's file": {map[string]string{"config": "GlobalKnownHostsFile HOME/.ssh/g\n",
			"known_hosts": known, "g": revoked}, host.HostKey, "is revoked"},
		"strict by the system": {map[string]string{"system/ssh_config": "Host *\n  StrictHostKeyChecking yes\n"},
			host.HostKey, "is unknown"},
		"the operator's own configuration goes first": {map[string]string{"config": "StrictHostKeyChecking ask\n",
			"system/ssh_config": "StrictHostKeyChecking yes\n"}, host.Other, ""},
		"strict for others": {map[string]string{"config": "Host other\n  StrictHostKeyChecking yes\n"}, host.Other, ""},
		"strict in an included file": {map[string]string{"config": "Include HOME/.ssh/conf.d/*\nHost other\n  Port 1\n",
			"conf.d/a": "Match final all\n  StrictHostKeyChecking yes\n"}, host.HostKey, "is unknown"},
		"what is included ends there": {map[string]string{
			"config": "Include HOME/.ssh/conf.d/*\nStrictHostKeyChecking yes\n", "conf.d/a": "Host other\n  Port 1\n"},
			host.HostKey, "is unknown"},
		"strict in what the system includes": {map[string]string{"system/ssh_config": "Include SYSTEM/d/*.conf\n",
			"system/d/a.conf": "StrictHostKeyChecking yes\n"}, host.HostKey, "is unknown"},
		"a relative path in what the system includes": {map[string]string{"system/ssh_config": "\nInclude d/*.conf\n"},
			config, "ssh_config:2: Include d/*.conf"},
		"strict in what the system includes for all hosts at last": {map[string]string{
			"system/ssh_config":     "Include SYSTEM/ssh_config.d/*.conf\nHost *\n  SendEnv LANG LC_*\n",
			"system/ssh_config.d/a": "StrictHostKeyChecking no\n",
			"system/ssh_config.d/50-distribution.conf": "Match final all\n\tInclude SYSTEM/policies/ssh.config\n" +
				"\tGSSAPIAuthentication yes\n",
			"system/policies/ssh.config": "Ciphers aes256-gcm@openssh.com,aes256-cbc\nRequiredRSASize 2048\n" +
				"StrictHostKeyChecking yes\n"}, host.HostKey, "is unknown"},
		"strict if a command says so": {map[string]string{
			"config": "Match exec \"true\"\n  StrictHostKeyChecking yes\n"}, host.HostKey, "is unknown"},
		"strict if a command said so": {map[string]string{
			"config": "Match exec \"false\"\n  StrictHostKeyChecking yes\n"}, host.Other, ""},
		"a value that is none": {map[string]string{"config": "StrictHostKeyChecking perhaps\n"}, config, `"perhaps"`},
		"an alias": {map[string]string{"config": "HostKeyAlias Machine-7\nStrictHostKeyChecking yes\n",
			"known_hosts": "machine-7 OWN\n"}, host.Other, ""},
		"an alias whose key is another": {map[string]string{"config": "HostKeyAlias machine-7\n",
			"known_hosts": known + "machine-7 OTHER\n"}, host.HostKey, "of machine-7:22 has changed"},
		"in a list of revoked keys": {map[string]string{"config": "RevokedHostKeys ~/.ssh/revoked\n",
			"known_hosts": known, "revoked": "# stolen\n\nOTHER\nOWN a comment\n"}, host.HostKey, "revoked:4"},
		"in the system's list of revoked keys": {map[string]string{"system/ssh_config": "RevokedHostKeys SYSTEM/r\n",
			"known_hosts": known, "system/r": "OWN\n"}, host.HostKey, "is revoked"},
		"not in the list of revoked keys": {map[string]string{"config": "RevokedHostKeys ~/.ssh/revoked\n",
			"known_hosts": known, "revoked": "OTHER\n"}, host.Other, ""},
		"no list of revoked keys": {map[string]string{"config": "RevokedHostKeys none\n", "known_hosts": known},
			host.Other, ""},
		"a list of revoked keys that is not there": {map[string]string{"config": "RevokedHostKeys ~/.ssh/revoked\n",
			"known_hosts": known}, config, "no such file"},
		"a list of revoked keys that is not understood": {map[string]string{
			"config": "RevokedHostKeys ~/.ssh/revoked\n", "known_hosts": known, "revoked": "OTHER\nssh-ed25519 AAAA\n"},
			config, "revoked:2 is not a public key"},
		"a list of revoked keys in binary form": {map[string]string{"config": "RevokedHostKeys ~/.ssh/revoked\n",
			"known_hosts": known, "revoked": "SSHKRL\n\x00\x00\x00\x00\x01"}, config, "KRL"},
		"an algorithm that it does not have": {map[string]string{"config": "HostKeyAlgorithms ecdsa-*\n",
			"known_hosts": known}, host.Unreachable, "no common algorithm"},
		"all algorithms but one": {map[string]string{"config": "HostKeyAlgorithms -ecdsa-*\n", "known_hosts": known},
			host.Other, ""},
		"a cipher that it does not have": {map[string]string{"config": "Ciphers aes256-cbc\n", "known_hosts": known},
			config, "Ciphers: none of aes256-cbc"},
		"algorithms that it has": {map[string]string{"known_hosts": known, "system/ssh_config": "Match all\n" +
			"  Ciphers aes256-gcm@openssh.com,aes256-cbc\n  MACs -*sha1*\n  KexAlgorithms ^curve25519-sha256\n"},
			host.Other, ""},
		"no algorithm": {map[string]string{"config": "HostKeyAlgorithms ssh-dss\n"}, config, "none of ssh-dss"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTrustee(t, c.files)
			err := p.try(t, sshpool.Options{KnownHosts: host.PolicyAcceptNew})
			if c.want == host.Other {
				must(t, err)
				return
			}
			wantClass(t, err, c.want)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}

// The effect of each value under each policy. None accepts a changed key.
func TestStrictHostKeyChecking(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"yes", "ask", "accept-new", "no", "off"} {
		for policy, lets := range map[host.Policy]bool{
			host.PolicyStrict: false, host.PolicyProbe: value != "yes", host.PolicyAcceptNew: value != "yes",
		} {
			t.Run(fmt.Sprint(value, policy), func(t *testing.T) {
				t.Parallel()
				directive := "StrictHostKeyChecking " + value + "\n"
				err := newTrustee(t, map[string]string{"config": directive}).try(t,
					sshpool.Options{KnownHosts: policy})
				if (err == nil) != lets || err != nil && !errors.Is(err, host.ErrUnknownHostKey) {
					t.Errorf("unknown: got %v", err)
				}
				err = newTrustee(t, map[string]string{"config": directive, "known_hosts": "ADDR OTHER\n"}).try(t,
					sshpool.Options{KnownHosts: policy})
				if !errors.Is(err, host.ErrHostKeyChanged) {
					t.Errorf("changed: got %v", err)
				}
			})
		}
	}
}

// Each unsupported setting that would make a connection safer causes one warning.
func TestWhatIsNotHonouredIsNamed(t *testing.T) {
	t.Parallel()
	p := newTrustee(t, map[string]string{"known_hosts": "ADDR OWN\n",
		"config": "CheckHostIP yes\nKnownHostsCommand /bin/true\nVerifyHostKeyDNS yes\n"})
	var said []string
	must(t, p.try(t, sshpool.Options{Warn: func(s string) { said = append(said, s) }}))
	if len(said) != 2 || !strings.Contains(said[0], "CheckHostIP yes") ||
		!strings.Contains(said[1], "KnownHostsCommand /bin/true") {
		t.Errorf("said %q", said)
	}
}
