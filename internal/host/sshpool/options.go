// Package sshpool reaches hosts by SSH: one connection for each machine, through bastions where there are some, on
// which commands, uploads and tunnels share.
package sshpool

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/credentials"
	"kubeone/internal/host/hostkey"
	"kubeone/internal/host/sshconfig"
)

// Options configure a Pool. The zero value connects strictly with the user's own SSH configuration.
type Options struct {
	// KnownHostsFiles are read, never written; missing files are empty. nil means the UserKnownHostsFile and the
	// GlobalKnownHostsFile of the SSH configuration, else those of OpenSSH.
	KnownHostsFiles []string
	// RecordFile is the cluster's own known_hosts: read first, and where accepted and approved keys go (created 0600).
	// "" keeps them in memory.
	RecordFile string
	// KnownHosts is the policy for unknown keys; the zero value is host.PolicyStrict.
	KnownHosts host.Policy
	// OnRecord is told each key that was recorded without Approve: by host.PolicyAcceptNew, or because its fingerprint
	// was given (host.Target.Accept). It may be called concurrently.
	OnRecord func(host.FirstContact)

	// Passphrase asks for the passphrase of a key file; it is called at most once per file, before anything is dialled,
	// and never concurrently. nil: nobody can be asked.
	Passphrase func(keyFile string) ([]byte, error)
	// Signers, if there are any, are the only keys to log in with: no key file is read, no agent asked.
	Signers []ssh.Signer
	// IgnoreSSHConfig leaves the SSH configuration unread. Otherwise ssh is asked about ~/.ssh/config, and for what
	// concerns host keys about ssh_config in SystemDir after it.
	IgnoreSSHConfig bool
	// SSH is the program that is asked; "" means ssh in PATH.
	SSH string
	// Warn receives what was passed over but may matter (a setting that is not supported). May be nil.
	Warn func(message string)

	DialTimeout       time.Duration // name resolution and TCP; 0 means 5 s
	HandshakeTimeout  time.Duration // until the host key is verified; 0 means 5 s
	AuthTimeout       time.Duration // from there until logged in (a key may ask for a touch); 0 means 30 s
	KeepaliveInterval time.Duration // between questions to a silent peer; 0 means 5 s; three misses lose the connection
	MaxDials          int           // connections being opened at one time; 0 means host.MostDials
	MaxIdle           int           // open connections that nobody uses; 0 means 256; those of bastions do not count
	MaxSessions       int           // commands at one time on one connection; 0 means 8 (sshd allows 10 by default)

	// NetDial opens the connection to the outermost hop; nil means a net.Dialer. For tests: added latency, counters.
	NetDial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Getenv is os.Getenv by default.
	Getenv func(string) string
	// HomeDir is where ~ points; "" means os.UserHomeDir.
	HomeDir string
	// SystemDir is where ssh_config and ssh_known_hosts of the whole system are; "" means /etc/ssh.
	SystemDir string
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.DialTimeout, 5*time.Second)
	def(&o.HandshakeTimeout, 5*time.Second)
	def(&o.AuthTimeout, 30*time.Second)
	def(&o.KeepaliveInterval, 5*time.Second)
	if o.MaxDials == 0 {
		o.MaxDials = host.MostDials
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 256
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 8
	}
	if o.NetDial == nil {
		o.NetDial = (&net.Dialer{KeepAlive: -1}).DialContext // SSH keepalives do this, and notice more
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.HomeDir == "" {
		o.HomeDir, _ = os.UserHomeDir()
	}
	if o.SystemDir == "" {
		o.SystemDir = "/etc/ssh"
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return o
}

func (o Options) sshconfigOptions() sshconfig.Options {
	return sshconfig.Options{
		Ignore: o.IgnoreSSHConfig, SSH: o.SSH, KnownHostsFiles: o.KnownHostsFiles, HomeDir: o.HomeDir,
		SystemDir: o.SystemDir, Getenv: o.Getenv, Warn: o.Warn,
	}
}

func (o Options) credentialOptions() credentials.Options {
	return credentials.Options{
		Passphrase: o.Passphrase, Getenv: o.Getenv, AgentTimeout: o.DialTimeout, Signers: o.Signers,
	}
}

func (o Options) hostkeyOptions() hostkey.Options {
	return hostkey.Options{RecordFile: o.RecordFile, Policy: o.KnownHosts, OnRecord: o.OnRecord}
}
