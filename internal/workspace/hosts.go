package workspace

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
)

// openPool creates the connection pool. It does not connect yet.
func (w *Workspace) openPool() *sshpool.Pool {
	o := w.opt.Pool
	o.KnownHosts, o.Passphrase, o.Warn = w.unknownKeyPolicy(), w.opt.Passphrase, w.opt.Warn
	o.RecordFile = w.knownHosts()
	o.OnRecord = func(c host.FirstContact) {
		status := "was not known"
		if len(c.Replaces) > 0 {
			status = "is accepted in place of " + host.KnownKeys(c.Replaces)
		}
		w.opt.Warn(fmt.Sprintf("%s (%s): host key %s %s and is now recorded in %s", c.Host, c.Address, c.Fingerprint,
			status, o.RecordFile))
	}
	return sshpool.New(o)
}

// unknownKeyPolicy returns the policy for unknown host keys. strictHostKeys in the manifest takes precedence over the
// option.
func (w *Workspace) unknownKeyPolicy() host.Policy {
	if w.loaded.StrictHostKeys {
		return host.PolicyStrict
	}
	return w.opt.NewHosts
}

// openHosts returns all hosts by ID, not yet connected. If several hosts fail for the same reason, such as a missing
// key, it returns a single error for them.
func (w *Workspace) openHosts() (map[string]host.Host, error) {
	accept, err := w.parseAcceptances(w.unknownKeyPolicy())
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, h := range w.want.Hosts() {
		addresses = append(addresses, h.PublicAddress)
	}
	w.pool.Prefetch(addresses)
	out := map[string]host.Host{}
	var failed []error
	for _, h := range w.want.Hosts() {
		t, err := Target(h)
		if err != nil {
			return nil, &engine.ConfigError{Err: err}
		}
		t.Accept = accept.hosts[h.ID]
		for i := range t.Bastions {
			t.Bastions[i].Accept = accept.bastions[t.Bastions[i].Address]
		}
		if out[h.ID], err = w.openHost(t); err != nil {
			failed = append(failed, err)
		}
	}
	return out, firstHostError(failed)
}

// firstHostError returns the first error, with the names of all hosts that failed for the same reason. It returns nil
// if there are no errors.
func firstHostError(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	var first, other *host.Error
	if !errors.As(failed[0], &first) {
		return failed[0]
	}
	names := []string{first.Host}
	for _, err := range failed[1:] {
		if errors.As(err, &other) && other.Reason() == first.Reason() {
			names = append(names, other.Host)
		}
	}
	if len(names) == 1 {
		return failed[0]
	}
	all := *first
	all.Host, all.Addr = problem.List(names), ""
	return &all
}

// openHost returns a host without connecting to it. The error is one that can be found without a connection.
func (w *Workspace) openHost(t host.Target) (host.Host, error) {
	if err := w.pool.Check(t); err != nil {
		return nil, err
	}
	return w.pool.Host(t), nil
}

// Target returns the connection settings of a host. Settings that are not in the manifest stay zero.
func Target(h desired.Host) (host.Target, error) {
	name := h.Hostname
	if name == "" {
		name = h.ID
	}
	t := host.Target{
		Name: name, AcceptAs: name, Address: h.PublicAddress, Port: h.SSH.Port, User: h.SSH.User,
		KeyFile: h.SSH.KeyFile, CertFile: h.SSH.CertFile, AgentSocket: h.SSH.AgentSocket,
	}
	var err error
	if t.HostKeys, err = parseHostKey(name, h.SSH.HostPublicKey); err != nil {
		return t, err
	}
	if h.SSH.Bastion == "" {
		return t, nil
	}
	b := host.Target{
		Name: h.SSH.Bastion, AcceptAs: h.SSH.Bastion, Address: h.SSH.Bastion,
		Port: h.SSH.BastionPort, User: h.SSH.BastionUser,
		KeyFile: h.SSH.BastionKeyFile, AgentSocket: h.SSH.AgentSocket,
	}
	if b.User == "" {
		b.User = h.SSH.User
	}
	if b.KeyFile == "" {
		b.KeyFile = h.SSH.KeyFile
	}
	if b.HostKeys, err = parseHostKey(b.Name, h.SSH.BastionHostPublicKey); err != nil {
		return t, err
	}
	t.Bastions = []host.Target{b}
	return t, nil
}

// parseHostKey parses a host key in wire format, encoded as base64.
func parseHostKey(name, key string) ([]ssh.PublicKey, error) {
	if key == "" {
		return nil, nil
	}
	wire, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("%s: the host public key is not base64: %w", name, err)
	}
	parsed, err := ssh.ParsePublicKey(wire)
	if err != nil {
		return nil, fmt.Errorf("%s: the host public key is not an SSH public key: %w", name, err)
	}
	return []ssh.PublicKey{parsed}, nil
}
