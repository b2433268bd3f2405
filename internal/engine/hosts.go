package engine

import (
	"encoding/base64"
	"fmt"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/desired"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
)

// openPool prepares one connection for each host, without opening it.
func (e *Engine) openPool() error {
	o := e.opt.Pool
	o.KnownHosts, o.Passphrase, o.Warn = e.opt.NewHosts, e.opt.Passphrase, e.opt.Warn
	if e.loaded.StrictHostKeys {
		o.KnownHosts = host.PolicyStrict
	}
	dir, err := e.StateDir()
	if err != nil {
		return err
	}
	o.RecordFile = filepath.Join(dir, "known_hosts")
	o.OnRecord = func(c host.FirstContact) {
		e.opt.Warn(fmt.Sprintf("%s (%s): host key %s was not known and is now recorded in %s", c.Host, c.Address, c.Fingerprint, o.RecordFile))
	}
	e.pool = sshpool.New(o)
	for _, h := range e.want.Hosts() {
		t, err := target(h)
		if err != nil {
			return &ConfigError{err}
		}
		if err := e.pool.Check(t); err != nil {
			return err
		}
		e.hosts[h.ID] = e.pool.Host(t)
	}
	return nil
}

// target says how a host is reached; what the manifest does not say stays zero.
func target(h desired.Host) (host.Target, error) {
	name := h.Hostname
	if name == "" {
		name = h.ID
	}
	t := host.Target{
		Name: name, Address: h.PublicAddress, Port: h.SSH.Port, User: h.SSH.User,
		KeyFile: h.SSH.KeyFile, CertFile: h.SSH.CertFile, AgentSocket: h.SSH.AgentSocket,
	}
	var err error
	if t.HostKeys, err = pinned(name, h.SSH.HostPublicKey); err != nil {
		return t, err
	}
	if h.SSH.Bastion == "" {
		return t, nil
	}
	b := host.Target{Name: h.SSH.Bastion, Address: h.SSH.Bastion, Port: h.SSH.BastionPort, User: h.SSH.BastionUser, KeyFile: h.SSH.BastionKeyFile, AgentSocket: h.SSH.AgentSocket}
	if b.User == "" {
		b.User = h.SSH.User
	}
	if b.KeyFile == "" {
		b.KeyFile = h.SSH.KeyFile
	}
	if b.HostKeys, err = pinned(b.Name, h.SSH.BastionHostPublicKey); err != nil {
		return t, err
	}
	t.Bastions = []host.Target{b}
	return t, nil
}

// pinned parses a host key given as base64 of its wire format.
func pinned(name, key string) ([]ssh.PublicKey, error) {
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
