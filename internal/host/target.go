package host

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Target says how to reach one machine. Every zero field may be filled from the SSH configuration
// of the operator, then by the default named here; a field that is set always wins.
type Target struct {
	// Name is for messages; "" means Address.
	Name string
	// Address is a DNS name, an IP address (IPv6 without brackets) or a Host alias of the SSH configuration. Required.
	Address string
	// Port is 22 by default.
	Port int
	// User is root by default.
	User string
	// KeyFile is a private key. It is offered first, and if the agent holds it, alone. By default: the identities of
	// the SSH configuration, else the agent's keys and the usual files in ~/.ssh.
	KeyFile string
	// CertFile is the certificate of a key in KeyFile or in the agent; by default KeyFile + "-cert.pub"
	// if there is one.
	CertFile string
	// AgentSocket is an absolute path (~/ is the home directory), "env:NAME" for the path in a variable, or "none". By
	// default env:SSH_AUTH_SOCK, if it is set.
	AgentSocket string
	// HostKeys pins the machine's keys: it must show one of these, whatever known_hosts files say. Public keys only.
	HostKeys []ssh.PublicKey
	// Accept lets the machine show another key than the one that known_hosts files say, but no other than the pinned
	// ones: "" does not, a fingerprint ("SHA256:...") allows that key, AcceptShown the one that it shows.
	Accept string
	// AcceptAs is what AcceptFlag calls the machine; "" where that does not help.
	AcceptAs string
	// AsUser runs commands as User, without sudo: for a machine that only keeps files.
	AsUser bool
	// Bastions are the machines to go through, outermost first. Each is verified like any host. By default the
	// ProxyJump of the SSH configuration.
	Bastions []Target
}

// DisplayName is Name, else Address.
func (t Target) DisplayName() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Address
}

// Validate finds what is wrong with the address and the port.
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
