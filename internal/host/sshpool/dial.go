package sshpool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/credentials"
)

// preferredCiphers returns ciphers ordered by their speed on machines with AES instructions.
func preferredCiphers() []string {
	return []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305,
		ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}
}

// dialHop opens the byte stream to the machine, through the previous hop or directly.
func (e *endpoint) dialHop(ctx context.Context, before *conn) (net.Conn, error) {
	addr := net.JoinHostPort(e.r.Address, fmt.Sprint(e.r.Port))
	ctx, cancel := context.WithTimeoutCause(ctx, e.pool.opts.DialTimeout, errDialTimeout(e.pool.opts.DialTimeout))
	defer cancel()
	if before == nil {
		raw, err := e.pool.opts.NetDial(ctx, "tcp", addr)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return raw, err
	}
	e.pool.count.addStats(e.via.r.Name, func(s *HostStats) { s.Tunnels++ })
	raw, err := before.client.DialContext(ctx, "tcp", addr)
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case before.isLost():
		err = fmt.Errorf("%w: %w", host.ErrConnectionLost, err)
	}
	return nil, &hopError{from: e.via.r.Name, err: err}
}

// errHandshake means that the machine is paused or runs a service other than sshd on the port.
var errHandshake = errors.New("accepts connections but does not speak SSH")

// errDialTimeout means that a machine does not answer at all.
type errDialTimeout time.Duration

func (e errDialTimeout) Error() string        { return fmt.Sprintf("no answer within %v", time.Duration(e)) }
func (e errDialTimeout) Is(target error) bool { return target == host.ErrSilent }

// errNoHandshake means that a machine accepts connections but sends nothing.
type errNoHandshake time.Duration

func (e errNoHandshake) Error() string {
	return fmt.Sprintf("%v: no answer to the handshake within %v", errHandshake, time.Duration(e))
}
func (e errNoHandshake) Is(target error) bool {
	return target == errHandshake || target == host.ErrSilent
}

// A hopError means that dialling from a bastion failed.
type hopError struct {
	from string
	err  error
}

func (e *hopError) Error() string { return fmt.Sprintf("from bastion %s: %v", e.from, e.err) }
func (e *hopError) Unwrap() error { return e.err }

// An authError means that a host with a verified identity refused the login.
type authError struct {
	offered []string // what was offered
	err     error
}

func (e *authError) Error() string { return e.err.Error() }
func (e *authError) Unwrap() error { return e.err }

// handshake opens an SSH connection over raw. The machine must prove its identity within HandshakeTimeout and accept
// one of our keys within AuthTimeout.
func (e *endpoint) handshake(ctx context.Context, raw net.Conn, auth credentials.Set) (*conn, error) {
	o := e.pool.opts
	metered := &meteredConn{Conn: raw}
	var expired, verified atomic.Bool
	cut := func() {
		_ = raw.Close()
		auth.Close() // a signature may be waiting for the operator
	}
	timer := time.AfterFunc(o.HandshakeTimeout, func() {
		expired.Store(true)
		cut()
	})
	defer timer.Stop()
	defer context.AfterFunc(ctx, cut)()

	var refused error
	config := &ssh.ClientConfig{
		Config:            ssh.Config{Ciphers: e.r.Ciphers, MACs: e.r.MACs, KeyExchanges: e.r.KeyExchanges},
		User:              e.r.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(auth.Signers...)},
		HostKeyAlgorithms: e.pool.known.Algorithms(e.r.Peer),
		ClientVersion:     "SSH-2.0-kubeone",
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			err := e.pool.known.Verify(e.r.Peer, key)
			switch {
			case verified.Load(): // a later key exchange of the same connection
			case err != nil:
				refused = err
			default:
				verified.Store(true)
				timer.Reset(o.AuthTimeout)
			}
			return err
		},
	}
	if config.Ciphers == nil {
		config.Ciphers = preferredCiphers()
	}
	sc, chans, reqs, err := ssh.NewClientConn(metered, e.r.Peer.Address, config)
	switch {
	case err == nil:
		return newConn(ssh.NewClient(sc, chans, reqs), metered, o.MaxSessions, e.pool.idle), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case refused != nil:
		return nil, refused
	}
	return nil, loginError(o, verified.Load(), expired.Load(), auth, err)
}

// loginError returns the error for a failed handshake. It distinguishes failures before and after the host key was
// verified.
func loginError(o Options, verified, expired bool, auth credentials.Set, err error) error {
	switch {
	case !verified && expired:
		return errNoHandshake(o.HandshakeTimeout)
	case !verified:
		return fmt.Errorf("%w: %w", errHandshake, withoutPorts(err))
	case expired:
		return fmt.Errorf("%w: no answer to the login within %v", errHandshake, o.AuthTimeout)
	case isDisconnect(err):
		return fmt.Errorf("%w: %w", host.ErrConnectionLost, withoutPorts(err))
	}
	return &authError{offered: auth.Offered(), err: err}
}

// withoutPorts removes the addresses of a connection from its error. The local port differs each time, but the same
// failure must have the same text.
func withoutPorts(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}
