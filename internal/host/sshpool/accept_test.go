package sshpool_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// given stands for the fingerprint that a server shows.
const given = "given"

// When a changed key is accepted, and when it is recorded.
func TestAcceptanceOfAnotherKey(t *testing.T) {
	t.Parallel()
	wrong := ssh.FingerprintSHA256(newKey(t).PublicKey())
	for name, c := range map[string]struct {
		accept   string // Target.Accept
		policy   host.Policy
		config   string // the SSH configuration
		want     error
		recorded bool
	}{
		"not accepted": {"", host.PolicyAcceptNew, "", host.ErrHostKeyChanged, false},
		"not accepted because nothing is asked": {"", host.PolicyAcceptNew, "StrictHostKeyChecking no",
			host.ErrHostKeyChanged, false},
		"shown in a plan": {host.AcceptShown, host.PolicyProbe, "", nil, false},
		"not shown":       {host.AcceptShown, host.PolicyAcceptNew, "", host.ErrHostKeyChanged, false},
		"shown, strictly": {host.AcceptShown, host.PolicyStrict, "", host.ErrHostKeyChanged, false},
		"shown, strict for this host": {host.AcceptShown, host.PolicyProbe, "StrictHostKeyChecking yes",
			host.ErrHostKeyChanged, false},
		"given, for a plan":                 {given, host.PolicyProbe, "", nil, false},
		"given, approved beforehand":        {given, host.PolicyAcceptNew, "", nil, true},
		"given, strictly":                   {given, host.PolicyStrict, "", nil, true},
		"another one given":                 {wrong, host.PolicyProbe, "", host.ErrHostKeyChanged, false},
		"another one given, without asking": {wrong, host.PolicyAcceptNew, "", host.ErrHostKeyChanged, false},
		"given, but revoked": {given, host.PolicyProbe, "RevokedHostKeys ~/revoked",
			host.ErrHostKeyChanged, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, sshtest.Options{})
			home := t.TempDir()
			writeFile(t, filepath.Join(home, ".ssh", "config"), c.config+"\n")
			writeFile(t, filepath.Join(home, "revoked"), string(ssh.MarshalAuthorizedKey(s.HostKey())))
			file := knownHosts(t, knownhosts.Line([]string{hostPort(s)}, newKey(t).PublicKey()))
			before, err := os.ReadFile(file)
			must(t, err)
			record := filepath.Join(t.TempDir(), "known_hosts")
			p := newPool(t, sshpool.Options{
				HomeDir: home, KnownHosts: c.policy, KnownHostsFiles: []string{file}, RecordFile: record,
			})
			target := unpinned(t, s)
			target.Accept = c.accept
			if c.accept == given {
				target.Accept = ssh.FingerprintSHA256(s.HostKey())
			}
			_, err = p.Host(target).Run(testContext(t), host.Cmd{Script: ":"})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			text, err := os.ReadFile(record)
			if (err == nil) != c.recorded {
				t.Errorf("recorded %q", text)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
				t.Errorf("the operator's own file has changed: %q, %v", after, err)
			}
		})
	}
}

// An unknown key other than the given one is refused under every policy.
func TestAnUnknownKeyMustBeTheGivenOne(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	target := unpinned(t, s)
	target.Accept = ssh.FingerprintSHA256(newKey(t).PublicKey())
	_, err := newPool(t, sshpool.Options{KnownHosts: host.PolicyAcceptNew}).Host(target).Run(testContext(t),
		host.Cmd{Script: ":"})
	if !errors.Is(err, host.ErrHostKeyChanged) || !strings.Contains(err.Error(), host.AcceptFlag) {
		t.Errorf("got %v", err)
	}
}

// A pinned key can only be changed in the manifest.
func TestAPinnedKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	target := unpinned(t, s)
	target.HostKeys = []ssh.PublicKey{newKey(t).PublicKey()}
	target.Accept, target.AcceptAs = ssh.FingerprintSHA256(s.HostKey()), "cp-2"
	_, err := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe}).Host(target).Run(testContext(t),
		host.Cmd{Script: ":"})
	if !errors.Is(err, host.ErrHostKeyChanged) || strings.Contains(err.Error(), host.AcceptFlag) ||
		!strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(s.HostKey().Marshal())) {
		t.Errorf("got %v", err)
	}
}

// An accepted key replaces the known key in every file, until that one is accepted again.
func TestAnAcceptedKeyTakesThePlaceOfTheKnownOne(t *testing.T) {
	t.Parallel()
	old := newKey(t)
	before, after := sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{old}}), sshtest.Start(t, sshtest.Options{})
	shown := func(s *sshtest.Server) string { return ssh.FingerprintSHA256(s.HostKey()) }
	record := filepath.Join(t.TempDir(), "known_hosts")
	const address = "192.0.2.7:22"
	file := knownHosts(t, knownhosts.Line([]string{address}, old.PublicKey()))
	// log in at the server's present address
	login := func(s *sshtest.Server, accept string, approve bool) error {
		p := newPool(t, sshpool.Options{
			KnownHosts: host.PolicyProbe, KnownHostsFiles: []string{file}, RecordFile: record, NetDial: always(s),
		})
		target := unpinned(t, s)
		target.Address, target.Port, target.Accept, target.AcceptAs = "192.0.2.7", 22, accept, "cp-2"
		h := p.Host(target)
		_, err := h.Run(testContext(t), host.Cmd{Script: ":"})
		if err != nil || accept == "" {
			return errors.Join(err, unlessNone(p.FirstContacts()))
		}
		met := p.FirstContacts()
		want := []string{"cp-2", shown(s)}
		got := []string{met[0].AcceptAs, met[0].Fingerprint}
		if diff := cmp.Diff(want, got); diff != "" || len(met[0].Replaces) != 1 {
			t.Errorf("%+v, %s", met, diff)
		}
		if _, err := h.Run(testContext(t), host.Cmd{Script: ":", Secret: true}); !errors.Is(err, host.ErrNotApproved) {
			t.Errorf("a secret was sent before the approval: %v", err)
		}
		if approve {
			must(t, p.Approve(met...))
		}
		return nil
	}
	must(t, login(before, "", false))
	must(t, login(after, host.AcceptShown, false)) // and not approved
	if err := login(after, "", false); !errors.Is(err, host.ErrHostKeyChanged) ||
		!strings.Contains(err.Error(), "--accept-host-key cp-2="+shown(after)) {
		t.Errorf("not approved: got %v", err)
	}
	must(t, login(after, shown(after), true))
	must(t, login(after, "", false))
	if err := login(before, "", false); !errors.Is(err, host.ErrHostKeyChanged) {
		t.Errorf("the key that was replaced: got %v", err)
	}
	must(t, login(before, host.AcceptShown, true)) // the first machine is back
	must(t, login(before, "", false))
	if err := login(after, "", false); !errors.Is(err, host.ErrHostKeyChanged) {
		t.Errorf("the key that is no longer accepted: got %v", err)
	}
}

// always connects to one server, whatever address is dialled.
func always(s *sshtest.Server) func(context.Context, string, string) (netConn, error) {
	return func(ctx context.Context, network, _ string) (netConn, error) {
		return dialer.DialContext(ctx, network, hostPort(s))
	}
}

// unlessNone returns an error if a key is not approved.
func unlessNone(contacts []host.FirstContact) error {
	if len(contacts) > 0 {
		return host.ErrNotApproved
	}
	return nil
}

// A bastion's key can be accepted like a host's, but that does not accept the key of the host behind it.
func TestAcceptanceIsForOneMachine(t *testing.T) {
	t.Parallel()
	bastion, node := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	stale := newKey(t).PublicKey()
	file := knownHosts(t, knownhosts.Line([]string{hostPort(bastion)}, stale),
		knownhosts.Line([]string{hostPort(node)}, stale))
	run := func(forBastion, forNode string) error {
		target, jump := unpinned(t, node), unpinned(t, bastion)
		target.Accept, jump.Accept = forNode, forBastion
		target.Bastions = []host.Target{jump}
		_, err := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe, KnownHostsFiles: []string{file}}).
			Host(target).Run(testContext(t), host.Cmd{Script: ":"})
		return err
	}
	for _, c := range []struct {
		bastion, node string
		refused       *sshtest.Server
	}{
		{"", host.AcceptShown, bastion}, {host.AcceptShown, "", node}, {host.AcceptShown, host.AcceptShown, nil},
	} {
		err := run(c.bastion, c.node)
		var changed *host.HostKeyChangedError
		switch {
		case c.refused == nil:
			must(t, err)
		case !errors.As(err, &changed) || changed.Host != hostPort(c.refused):
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
