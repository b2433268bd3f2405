package sshtest

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// serveConn serves SSH on one connection until it ends.
func (s *Server) serveConn(raw net.Conn) {
	defer s.forgetConn(raw)
	defer func() { _ = raw.Close() }()
	if s.opts.Silent {
		_, _ = io.Copy(io.Discard, raw)
		return
	}
	var transport net.Conn = &deafConn{raw, s}
	if s.opts.RTT > 0 {
		var err error
		if transport, err = slowDown(s.ctx, transport, s.opts.RTT); err != nil {
			return
		}
	}
	conn, chans, reqs, err := ssh.NewServerConn(transport, s.serverConfig())
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() {
		for r := range reqs { // keepalives among them: any answer is a sign of life
			_ = r.Reply(false, nil)
			select {
			case s.asked <- struct{}{}:
			default:
			}
		}
	}()
	for ch := range chans {
		switch ch.ChannelType() {
		case "session":
			go s.serveSession(ctx, conn, raw, ch)
		case "direct-tcpip":
			go s.openTunnel(ctx, ch)
		default:
			_ = ch.Reject(ssh.UnknownChannelType, ch.ChannelType())
		}
	}
}

func (s *Server) serverConfig() *ssh.ServerConfig {
	checker := ssh.CertChecker{
		IsUserAuthority: func(k ssh.PublicKey) bool {
			return s.opts.UserCA != nil && sameKey(k, s.opts.UserCA)
		},
		UserKeyFallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if s.opts.AuthorizedKeys == nil ||
				slices.ContainsFunc(s.opts.AuthorizedKeys, func(a ssh.PublicKey) bool { return sameKey(a, k) }) {
				return &ssh.Permissions{}, nil
			}
			return nil, errors.New("not authorized")
		},
	}
	c := &ssh.ServerConfig{MaxAuthTries: s.opts.MaxAuthTries, PublicKeyCallback: checker.Authenticate}
	for _, k := range s.opts.HostKeys {
		c.AddHostKey(k)
	}
	return c
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// openTunnel returns a direct-tcpip channel (RFC 4254, 7.2).
func (s *Server) openTunnel(ctx context.Context, ch ssh.NewChannel) {
	if s.opts.NoForwarding {
		_ = ch.Reject(ssh.Prohibited, "administratively prohibited")
		return
	}
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	out, err := s.opts.Dial(ctx, "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer func() { _ = out.Close() }()
	in, reqs, err := ch.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	go func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}()
	_, _ = io.Copy(out, in)
}
