package sshpool_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// unpinned returns a target for a server whose key is not in the manifest.
func unpinned(t *testing.T, s *sshtest.Server) host.Target {
	t.Helper()
	target := targetOf(t, s)
	target.HostKeys = nil
	return target
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	k, err := sshtest.NewKey()
	must(t, err)
	return k
}

func knownHosts(t *testing.T, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "known_hosts")
	writeFile(t, path, strings.Join(lines, "\n")+"\n")
	return path
}

func TestKnownHostsFiles(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	own, other := s.HostKey(), newKey(t).PublicKey()
	key := func(k ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) }
	addr := knownhosts.Normalize(hostPort(s))
	port22 := "127.0.0.1 " + key(other) // another service of the same machine
	for name, c := range map[string]struct {
		lines []string
		want  error
	}{
		"plain":               {[]string{addr + " " + key(own)}, nil},
		"hashed":              {[]string{knownhosts.HashHostname(addr) + " " + key(own)}, nil},
		"wildcard":            {[]string{fmt.Sprintf("[127.0.*]:%d %s", s.Port(), key(own))}, nil},
		"among several names": {[]string{"example.com," + addr + " " + key(own)}, nil},
		"one of two keys":     {[]string{addr + " " + key(other), addr + " " + key(own)}, nil},
		"after lines that mean nothing": {
			[]string{"# hosts", "", "nonsense", "x ssh-quantum AAAA", addr + " " + key(own)},
			nil,
		},
		"another port": {[]string{port22}, host.ErrUnknownHostKey},
		"negated": {[]string{fmt.Sprintf("[*]:%d,!%s %s", s.Port(), addr, key(own))},
			host.ErrUnknownHostKey},
		"empty":   {nil, host.ErrUnknownHostKey},
		"changed": {[]string{"", addr + " " + key(other)}, host.ErrHostKeyChanged},
		"changed, hashed": {[]string{knownhosts.HashHostname(addr) + " " + key(other)},
			host.ErrHostKeyChanged},
		"revoked": {[]string{addr + " " + key(own), "@revoked * " + key(own)},
			host.ErrHostKeyChanged},
		"revoked for this address": {[]string{addr + " " + key(own), "@revoked " + addr + " " + key(own)},
			host.ErrHostKeyChanged},
		"revoked for all ports of the address": {[]string{addr + " " + key(own), "@revoked 127.0.0.1 " + key(own)},
			host.ErrHostKeyChanged},
		"revoked, hashed": {[]string{addr + " " + key(own),
			"@revoked " + knownhosts.HashHostname("127.0.0.1") + " " + key(own)}, host.ErrHostKeyChanged},
		"revoked for others":   {[]string{addr + " " + key(own), "@revoked *.example.com " + key(own)}, nil},
		"another key revoked":  {[]string{addr + " " + key(own), "@revoked * " + key(other)}, nil},
		"revoked and unknown":  {[]string{"@revoked * " + key(own)}, host.ErrHostKeyChanged},
		"marked as what it is": {[]string{"@trusted " + addr + " " + key(own)}, host.ErrUnknownHostKey},
		"any port":             {[]string{"[127.0.0.1]:* " + key(own)}, nil},
		"an authority's key is no host's": {[]string{"@cert-authority " + addr + " " + key(own)},
			host.ErrUnknownHostKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, sshpool.Options{KnownHostsFiles: []string{knownHosts(t, c.lines...)}})
			_, err := p.Host(unpinned(t, s)).Run(testContext(t), host.Cmd{Script: ":"})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want != nil {
				wantClass(t, err, host.HostKey)
			}
		})
	}
}

func TestStrictNamesTheFingerprint(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	_, err := newPool(t, sshpool.Options{}).Host(unpinned(t, s)).Run(testContext(t), host.Cmd{Script: ":"})
	var unknown *host.UnknownHostKeyError
	if !errors.As(err, &unknown) || unknown.Fingerprint != ssh.FingerprintSHA256(s.HostKey()) ||
		!strings.Contains(err.Error(), "sshHostPublicKey") {
		t.Errorf("got %v", err)
	}
}

func TestChangedKeyStopsInEveryPolicy(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	old := newKey(t).PublicKey()
	file := knownHosts(t, "# a comment", knownhosts.Line([]string{hostPort(s)}, old))
	want := &host.HostKeyChangedError{
		Host: hostPort(s), Known: []host.KnownKey{{Fingerprint: ssh.FingerprintSHA256(old), Where: file + ":2"}},
		Offered: ssh.FingerprintSHA256(s.HostKey()),
	}
	for name, policy := range map[string]host.Policy{
		"strict": host.PolicyStrict,
		"accept": host.PolicyAcceptNew,
		"probe":  host.PolicyProbe,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, sshpool.Options{KnownHosts: policy, KnownHostsFiles: []string{file}})
			_, err := p.Host(unpinned(t, s)).Run(testContext(t), host.Cmd{Script: ":"})
			var changed *host.HostKeyChangedError
			if !errors.As(err, &changed) {
				t.Fatalf("got %v", err)
			}
			wantClass(t, err, host.HostKey)
			if diff := cmp.Diff(want, changed); diff != "" {
				t.Error(diff)
			}
			pinned := unpinned(t, s)
			pinned.HostKeys = []ssh.PublicKey{old}
			_, err = p.Host(pinned).Run(testContext(t), host.Cmd{Script: ":"})
			if !errors.As(err, &changed) || changed.Known[0].Where != "the manifest" {
				t.Errorf("pinned: got %v", err)
			}
		})
	}
}

func TestTheAlgorithmOfTheKnownKeyIsNegotiated(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	second, err := ssh.NewSignerFromKey(private)
	must(t, err)
	first := newKey(t)
	s := sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{second, first}})
	for _, known := range []ssh.PublicKey{first.PublicKey(), second.PublicKey()} {
		t.Run(known.Type(), func(t *testing.T) {
			t.Parallel()
			file := knownHosts(t, knownhosts.Line([]string{hostPort(s)}, known))
			runScript(t, newPool(t, sshpool.Options{KnownHostsFiles: []string{file}}).Host(unpinned(t, s)), ":")
			pinned := unpinned(t, s)
			pinned.HostKeys = []ssh.PublicKey{known}
			runScript(t, newPool(t, sshpool.Options{}).Host(pinned), ":")
		})
	}
}

func TestHostCertificates(t *testing.T) {
	t.Parallel()
	ca, plain := newKey(t), newKey(t)
	serve := func(t *testing.T, principal string) *sshtest.Server {
		cert := &ssh.Certificate{Key: plain.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{principal},
			ValidBefore: uint64(time.Now().Add(time.Hour).Unix())}
		must(t, cert.SignCert(rand.Reader, ca))
		signer, err := ssh.NewCertSigner(cert, plain)
		must(t, err)
		return sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{signer, plain}})
	}
	authority := func(k ssh.PublicKey) string {
		return knownHosts(t, "@cert-authority * "+string(ssh.MarshalAuthorizedKey(k)),
			"@cert-authority [*]:* "+string(ssh.MarshalAuthorizedKey(k)))
	}
	login := func(t *testing.T, s *sshtest.Server, file string) error {
		line, err := os.ReadFile(file)
		must(t, err)
		file = knownHosts(t, strings.ReplaceAll(string(line), "[*]:*", fmt.Sprintf("[*]:%d", s.Port())))
		_, err = newPool(t, sshpool.Options{KnownHostsFiles: []string{file}}).Host(unpinned(t, s)).Run(testContext(t),
			host.Cmd{Script: ":"})
		return err
	}
	must(t, login(t, serve(t, "127.0.0.1"), authority(ca.PublicKey())))
	wantClass(t, login(t, serve(t, "another.example.com"), authority(ca.PublicKey())), host.HostKey)
	wantClass(t, login(t, serve(t, "127.0.0.1"), authority(newKey(t).PublicKey())), host.HostKey)
}

func TestAcceptNewRecordsOnce(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{AllLoopback: true})
	record := filepath.Join(t.TempDir(), "cluster", "known_hosts")
	var mu sync.Mutex
	var told []string
	options := sshpool.Options{KnownHosts: host.PolicyAcceptNew, RecordFile: record,
		OnRecord: func(c host.FirstContact) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, c.Fingerprint)
		}}
	p := newPool(t, options)
	target := unpinned(t, s)
	var wg sync.WaitGroup
	for _, addr := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		wg.Go(func() {
			target := target
			target.Address = addr
			_, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":", Secret: true})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.DropAll()
	runScript(t, p.Host(target), ":") // known now
	if len(told) != 3 || told[0] != ssh.FingerprintSHA256(s.HostKey()) {
		t.Errorf("told %q", told)
	}
	info, err := os.Stat(record)
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := knownhosts.New(record); err != nil {
		t.Error(err)
	}
	runScript(t, newPool(t, sshpool.Options{RecordFile: record}).Host(target), ":") // strictly
}

func TestFirstContactInProbe(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})
	record := filepath.Join(t.TempDir(), "known_hosts")
	writeFile(t, record, "# no newline at the end")
	p := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe, RecordFile: record})
	h := p.Host(unpinned(t, s))
	file := host.File{Path: filepath.Join(t.TempDir(), "f"), Size: 1, Content: strings.NewReader("x")}

	runScript(t, h, ":") // a probe may run
	_, err := h.Run(testContext(t), host.Cmd{Script: ":", Secret: true})
	wantClass(t, err, host.HostKey)
	for _, err := range []error{err, h.Upload(testContext(t), file)} {
		if !errors.Is(err, host.ErrNotApproved) {
			t.Errorf("a secret was sent: %v", err)
		}
	}
	want := []host.FirstContact{
		{Host: "node-1", Address: hostPort(s), Fingerprint: ssh.FingerprintSHA256(s.HostKey()), Key: s.HostKey()},
	}
	same := cmp.Comparer(func(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) })
	if diff := cmp.Diff(want, p.FirstContacts(), same); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, h.(host.FirstContacter).FirstContacts(), same); diff != "" {
		t.Error(diff)
	}

	must(t, p.Approve(want...))
	must(t, p.Approve(want...)) // nothing left to do
	must(t, h.Upload(testContext(t), file))
	if c := p.FirstContacts(); len(c) != 0 {
		t.Errorf("still %v", c)
	}
	text, err := os.ReadFile(record)
	must(t, err)
	if got, want := string(text), "# no newline at the end\n"+knownhosts.Line([]string{hostPort(s)}, s.HostKey())+
		"\n"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestApprovalIsOfTheKeyThatWasShown(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	p := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe})
	runScript(t, p.Host(unpinned(t, s)), ":")
	c := p.FirstContacts()[0]
	c.Key = newKey(t).PublicKey()
	if err := p.Approve(c); err == nil || len(p.FirstContacts()) != 1 {
		t.Errorf("approved another key: %v", err)
	}
}

func TestKeyThatChangesWithinARunStops(t *testing.T) {
	t.Parallel()
	one := sshtest.Start(t, sshtest.Options{})
	two := sshtest.Start(t, sshtest.Options{})
	to := one
	redirect := func(ctx context.Context, network, _ string) (c netConn, err error) {
		return dialer.DialContext(ctx, network, hostPort(to))
	}
	p := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe, NetDial: redirect})
	h := p.Host(unpinned(t, one))
	runScript(t, h, ":")
	to = two
	must(t, h.Close())
	_, err := h.Run(testContext(t), host.Cmd{Script: ":"})
	var changed *host.HostKeyChangedError
	if !errors.As(err, &changed) || changed.Known[0].Where != "this run" {
		t.Errorf("got %v", err)
	}
}
