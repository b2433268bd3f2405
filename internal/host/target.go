package host

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Target says how to reach one machine. Zero fields are filled from the operator's SSH configuration, then from the
// defaults below; a field that is set always wins.
type Target struct {
	// Name is for messages; "": Address.
	Name string
	// Address is a DNS name, an IP address (IPv6 without brackets) or a Host alias in the SSH configuration.
	// Required.
	Address string
	// Port defaults to 22.
	Port int
	// User defaults to root.
	User string
	// KeyFile is a private key. It is offered first, and alone if the agent holds it. Default: the identities in the
	// SSH configuration, else the agent's keys and the usual files in ~/.ssh.
	KeyFile string
	// CertFile is the certificate of a key in KeyFile or in the agent. Default: KeyFile + "-cert.pub" if it exists.
	CertFile string
	// AgentSocket is an absolute path (~/ is the home directory), "env:NAME" for the path in a variable, or "none".
	// Default: env:SSH_AUTH_SOCK, if set.
	AgentSocket string
	// HostKeys pins the machine's public keys: it must show one of these, whatever known_hosts files say.
	HostKeys []ssh.PublicKey
	// Accept accepts a key other than the known one, but never one other than the pinned ones. "" accepts none, a
	// fingerprint ("SHA256:...") that key, AcceptShown the key that the machine shows.
	Accept string
	// AcceptAs is the machine's name for AcceptFlag; "" if the flag does not help.
	AcceptAs string
	// AsUser runs commands as User, without sudo: for a machine that only keeps files.
	AsUser bool
	// Bastions are the machines to go through, outermost first. Each is verified like any host. Default: the
	// ProxyJump of the SSH configuration.
	Bastions []Target
}

// DisplayName returns Name, else Address.
func (t Target) DisplayName() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Address
}

// Validate checks the address and the port.
func (t Target) Validate() error {
	switch {
	case t.Address == "":
		return errors.New("no address to connect to")
	case strings.ContainsAny(t.Address, " \t\r\n/@"), strings.HasPrefix(t.Address, "-"):
		return fmt.Errorf("%q is not a host name or an address", t.Address)
	case t.Port < 0 || t.Port > 65535:
		return fmt.Errorf("%d is not a port", t.Port)
	}
	return nil
}
