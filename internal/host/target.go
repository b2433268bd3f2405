package host

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Target says how to reach one machine. Fields that are not set are taken from the SSH configuration of the operator,
// then from the defaults below.
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
	// KeyFile is the file of a private key. It is offered first, and is the only one offered if the agent has it.
	// Default: the identities in the SSH configuration, otherwise the keys in the agent and the usual files in ~/.ssh.
	KeyFile string
	// CertFile is the certificate of a key in KeyFile or in the agent. Default: KeyFile + "-cert.pub" if it exists.
	CertFile string
	// AgentSocket is an absolute path (~/ is the home directory), "env:NAME" for the path in a variable, or "none".
	// Default: env:SSH_AUTH_SOCK, if set.
	AgentSocket string
	// HostKeys are the only accepted host keys of the machine, whatever known_hosts files contain. Empty: files decide.
	HostKeys []ssh.PublicKey
	// Accept says which key to accept if it differs from the known one. "" accepts none, a fingerprint ("SHA256:...")
	// only that key, and AcceptShown any key. If HostKeys is set, no other keys are accepted.
	Accept string
	// AcceptAs is the name of the machine for AcceptFlag; "" if the flag does not help.
	AcceptAs string
	// AsUser runs commands as User, without sudo. It is for machines that only store files.
	AsUser bool
	// Bastions are the machines to connect through, the outermost first. Their host keys are verified like those of
	// hosts. Default: the ProxyJump in the SSH configuration.
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
