// Package sshpool reaches hosts by SSH. It opens one connection per machine, through bastions if necessary, shared by
// commands, uploads and tunnels.
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
	// KnownHostsFiles are read, never written; missing files are empty. Nil means the UserKnownHostsFile and
	// GlobalKnownHostsFile of the SSH configuration, else OpenSSH's defaults.
	KnownHostsFiles []string
	// RecordFile is the cluster's own known_hosts file. It is read first, and gets accepted and approved keys
	// (created with mode 0600). "" keeps them in memory.
	RecordFile string
	// KnownHosts is the policy for unknown keys; the zero value is host.PolicyStrict.
	KnownHosts host.Policy
	// OnRecord is called with each key recorded without Approve: by host.PolicyAcceptNew, or because the operator
	// gave its fingerprint (host.Target.Accept). Calls may be concurrent.
	OnRecord func(host.FirstContact)

	// Passphrase asks the operator for the passphrase of a key file: at most once per file, before dialling, and
	// never concurrently. Nil: there is no operator to ask.
	Passphrase func(keyFile string) ([]byte, error)
	// Signers, if any, are the only keys to log in with: no key file is read, no agent asked.
	Signers []ssh.Signer
	// IgnoreSSHConfig skips the SSH configuration. Otherwise ssh is asked about ~/.ssh/config, and for host keys also
	// about ssh_config in SystemDir.
	IgnoreSSHConfig bool
	// SSH is the ssh program; "": ssh in PATH.
	SSH string
	// Warn is called with settings that were ignored but may matter, such as unsupported ones. May be nil.
	Warn func(message string)

	DialTimeout       time.Duration // name resolution and TCP; 0 means 5 s
	HandshakeTimeout  time.Duration // until the host key is verified; 0 means 5 s
	AuthTimeout       time.Duration // from there until logged in (a key may ask for a touch); 0 means 30 s
	KeepaliveInterval time.Duration // between questions to a silent peer; 0 means 5 s; three misses lose the connection
	MaxDials          int           // connections being opened at one time; 0 means host.MaxDials
	MaxIdle           int           // unused open connections, not counting bastions; 0 means 256
	MaxSessions       int           // commands at one time on one connection; 0 means 8 (sshd allows 10 by default)

	// NetDial opens the connection to the outermost hop; nil means a net.Dialer. For tests: added latency, counters.
	NetDial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Getenv defaults to os.Getenv.
	Getenv func(string) string
	// HomeDir is the directory for ~; "": os.UserHomeDir.
	HomeDir string
	// SystemDir holds the system's ssh_config and ssh_known_hosts; "": /etc/ssh.
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
		o.MaxDials = host.MaxDials
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 256
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 8
	}
	if o.NetDial == nil {
		o.NetDial = (&net.Dialer{KeepAlive: -1}).DialContext // SSH keepalives do this and detect more
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
