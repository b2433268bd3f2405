// Package sshpool connects to hosts by SSH. Commands, uploads and tunnels share one connection per machine, through
// bastions if necessary.
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

// Options configure a Pool. The zero value uses the SSH configuration of the user and refuses unknown host keys.
type Options struct {
	// KnownHostsFiles are only read. Missing files count as empty. Nil means the UserKnownHostsFile and
	// GlobalKnownHostsFile in the SSH configuration, otherwise the defaults of OpenSSH.
	KnownHostsFiles []string
	// RecordFile is the known_hosts file of the cluster. It is read first, and accepted and approved keys are appended
	// to it (created with mode 0600). "" keeps these keys in memory only.
	RecordFile string
	// KnownHosts is the policy for unknown keys; the zero value is host.PolicyStrict.
	KnownHosts host.Policy
	// OnRecord is called with each key recorded without Approve: by host.PolicyAcceptNew, or because the operator
	// gave its fingerprint (host.Target.Accept). Calls may be concurrent.
	OnRecord func(host.FirstContact)

	// Passphrase asks the operator for the passphrase of a key file: at most once per file, before dialling, and never
	// concurrently. Nil means that there is no operator to ask.
	Passphrase func(keyFile string) ([]byte, error)
	// Signers, if any, are the only keys to log in with. Key files and the agent are then not used.
	Signers []ssh.Signer
	// IgnoreSSHConfig skips the SSH configuration. Otherwise ssh is asked about ~/.ssh/config, and for host keys also
	// about ssh_config in SystemDir.
	IgnoreSSHConfig bool
	// SSH is the ssh program; "": ssh in PATH.
	SSH string
	// Warn, if not nil, is called with a message about settings that are not supported but would make a difference.
	Warn func(message string)

	DialTimeout       time.Duration // name resolution and TCP; 0 means 5 s
	HandshakeTimeout  time.Duration // until the host key is verified; 0 means 5 s
	AuthTimeout       time.Duration // from there until logged in (a key may ask for a touch); 0 means 30 s
	KeepaliveInterval time.Duration // between keepalives; 0 means 5 s; three unanswered ones lose the connection
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
