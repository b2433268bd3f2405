package sshpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/credentials"
	"kubeone/internal/host/sshconfig"
)

// hinter is an error that says what to do.
type hinter interface{ Hint() string }

// explainError returns the class of a connection error, and a hint that says what to do.
func explainError(err error, r sshconfig.Resolved) (host.Class, string) {
	var own hinter
	if errors.As(err, &own) {
		return host.ClassOf(err), own.Hint()
	}
	var auth *authError
	var unknown *host.UnknownHostKeyError
	var dns *net.DNSError
	var channel *ssh.OpenChannelError
	switch {
	case errors.Is(err, context.Canceled):
		return host.Canceled, ""
	case errors.Is(err, host.ErrTimeout):
		return host.Timeout, ""
	case errors.Is(err, host.ErrConnectionLost):
		return host.Lost, "run the command again once the host is back"
	case errors.Is(err, host.ErrNotApproved):
		return host.HostKey, "approve the plan that shows its fingerprint, or add the key to known_hosts"
	case errors.As(err, &unknown):
		return host.HostKey, "compare the fingerprint on the machine's console, then add the key to known_hosts or " +
			"pin it in the manifest (sshHostPublicKey)"
	case errors.As(err, &auth):
		return host.Auth, "offered " + joinOrNothing(auth.offered) + "; is one of them in ~" + r.User +
			"/.ssh/authorized_keys on the host?"
	case errors.Is(err, credentials.ErrNoKey):
		return host.Auth, "set sshPrivateKeyFile in the manifest, or start an SSH agent and add a key (ssh-add)"
	case errors.As(err, &dns):
		return host.Unreachable, "check the address in the manifest and the name server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host.Unreachable, fmt.Sprintf("does sshd listen on port %d there?", r.Port)
	case errors.Is(err, errHandshake):
		return host.Unreachable, fmt.Sprintf("is it sshd that listens on port %d, and is the machine alive?", r.Port)
	case errors.As(err, &channel) && channel.Reason == ssh.Prohibited:
		return host.Unreachable, "the bastion forbids forwarding; set AllowTcpForwarding yes in its sshd_config"
	case isNetworkError(err), errors.As(err, &channel):
		return host.Unreachable, "is the machine on, and is there a route to it (VPN, firewall, bastion)?"
	case errors.Is(err, context.DeadlineExceeded):
		return host.Timeout, ""
	}
	return host.Other, ""
}

func joinOrNothing(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}

func isNetworkError(err error) bool {
	var op *net.OpError
	var no syscall.Errno
	var silent errDialTimeout
	return errors.As(err, &op) || errors.As(err, &no) || errors.As(err, &silent)
}

// isDisconnect reports whether the connection was cut, and not refused with a message.
func isDisconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
