package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// hinter is an error that knows what to do about itself.
type hinter interface{ hint() string }

// explain gives an error on the way to a host its class and its advice.
func explain(err error, r resolved) (Class, string) {
	var own hinter
	if errors.As(err, &own) {
		return ClassOf(err), own.hint()
	}
	var auth *authError
	var unknown *UnknownHostKeyError
	var dns *net.DNSError
	var channel *ssh.OpenChannelError
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled, ""
	case errors.Is(err, ErrTimeout):
		return Timeout, ""
	case errors.Is(err, ErrConnectionLost):
		return Lost, "run the command again once the host is back"
	case errors.Is(err, ErrNotApproved):
		return HostKey, "approve the plan that shows its fingerprint, or add the key to known_hosts"
	case errors.As(err, &unknown):
		return HostKey, "compare the fingerprint on the machine's console, then add the key to known_hosts or pin it in the manifest (sshHostPublicKey)"
	case errors.As(err, &auth):
		return Auth, "offered " + orNothing(auth.offered) + "; is one of them in ~" + r.user + "/.ssh/authorized_keys on the host?"
	case errors.Is(err, errNoKey):
		return Auth, "set sshPrivateKeyFile in the manifest, or start an SSH agent and add a key (ssh-add)"
	case errors.Is(err, errAgent):
		return Auth, "is the SSH agent running? check SSH_AUTH_SOCK or sshAgentSocket"
	case errors.As(err, &dns):
		return Unreachable, "check the address in the manifest and the name server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return Unreachable, fmt.Sprintf("does sshd listen on port %d there?", r.port)
	case errors.Is(err, errHandshake):
		return Unreachable, fmt.Sprintf("is it sshd that listens on port %d, and is the machine alive?", r.port)
	case errors.As(err, &channel) && channel.Reason == ssh.Prohibited:
		return Unreachable, "the bastion forbids forwarding; set AllowTcpForwarding yes in its sshd_config"
	case isNetwork(err), errors.As(err, &channel):
		return Unreachable, "is the machine on, and is there a route to it (VPN, firewall, bastion)?"
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout, ""
	}
	return Other, ""
}

func orNothing(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}

func isNetwork(err error) bool {
	var op *net.OpError
	var no syscall.Errno
	var silent errDialTimeout
	return errors.As(err, &op) || errors.As(err, &no) || errors.As(err, &silent)
}

// isDisconnect tells a connection that was cut from one that was refused with words.
func isDisconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
