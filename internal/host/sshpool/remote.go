package sshpool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/shell"
)

// A remote is a Host reached by SSH.
type remote struct {
	name     string
	endpoint func() (*endpoint, error) // resolves the target once
}

var (
	_ host.Host           = (*remote)(nil)
	_ host.FirstContacter = (*remote)(nil)
)

func (r *remote) Name() string { return r.name }

// FirstContacts implements FirstContacter.
func (r *remote) FirstContacts() []host.FirstContact {
	e, err := r.endpoint()
	if err != nil {
		return nil
	}
	return e.firstContacts()
}

// Close closes the connection to the host, also for other Hosts that share it. Bastions stay connected.
func (r *remote) Close() error {
	e, err := r.endpoint()
	if err != nil {
		return nil //nolint:nilerr // never opened, or closed with its pool
	}
	return e.close()
}

// Run implements Host.
func (r *remote) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	e, err := r.endpoint()
	if err != nil {
		return host.Result{ExitCode: -1}, err
	}
	for tries := 0; ; tries++ {
		cn, err := e.ensureConnected(ctx)
		if err != nil {
			return host.Result{ExitCode: -1}, err
		}
		if c.Secret {
			if err := e.checkApproved(describeCommand(c)); err != nil {
				e.pool.idle.releaseAndClose(cn)
				return host.Result{ExitCode: -1}, err
			}
		}
		res, err := e.runCommand(ctx, cn, c)
		e.pool.idle.releaseAndClose(cn)
		var early *notStarted
		if tries == 0 && errors.As(err, &early) && errors.Is(err, host.ErrConnectionLost) && ctx.Err() == nil {
			continue // the connection was already lost, so nothing was run
		}
		return res, err
	}
}

func describeCommand(c host.Cmd) string {
	if c.Name == "" {
		return "run a command"
	}
	return c.Name
}

// checkApproved returns an error if the key of this machine or of a bastion is not approved.
func (e *endpoint) checkApproved(what string) error {
	contacts := e.firstContacts()
	if len(contacts) == 0 {
		return nil
	}
	c := contacts[0]
	return e.classifyError(what, fmt.Errorf("%w: %s of %s (%s)", host.ErrNotApproved, c.Fingerprint, c.Host, c.Address))
}

// runCommand runs one command on one connection.
func (e *endpoint) runCommand(ctx context.Context, cn *conn, c host.Cmd) (host.Result, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = host.DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, commandTimeout(timeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.pool.count.addStats(e.r.Name, func(s *HostStats) { s.Commands++ })
	up := e.sudoPrefix(cn)
	stdin, n := shell.Wire(c.Script, c.Stdin)
	stdout, stderr := shell.NewOutput(c.Stdout, stop), shell.NewOutput(c.Stderr, stop)
	start := time.Now()
	err := cn.execCommand(ctx, shell.CommandLine(shell.Argv(up, n, c.Args)), stdin, stdout, stderr)
	res := host.Result{Duration: time.Since(start), ExitCode: -1}
	var tail []byte
	res.Stdout, _ = stdout.Shut()
	res.Stderr, tail = stderr.Shut()
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) {
		return res, e.classifyError(describeCommand(c), err)
	}
	if exit == nil {
		cn.sudo.Store(true)
		res.ExitCode = 0
		return res, nil
	}
	res.ExitCode = exit.ExitStatus()
	if detail, failed := shell.NoSudo(res.ExitCode, tail); failed && up == shell.CheckSudo {
		return res,
			e.classifyError(describeCommand(c), &host.NoSudoError{Host: e.r.Name, User: e.r.User, Detail: detail})
	}
	cn.sudo.Store(true)
	return res, &host.ExitError{
		Host: e.r.Name, What: c.Name, Code: res.ExitCode, Signal: exit.Signal(), Stderr: slices.Clone(tail),
	}
}

// sudoPrefix returns how to become root on a connection. Users other than root use sudo, which the first command
// checks.
func (e *endpoint) sudoPrefix(cn *conn) shell.Elevation {
	switch {
	case e.r.User == "root", e.r.AsUser:
		return shell.AsIs
	case cn.sudo.Load():
		return shell.BySudo
	}
	return shell.CheckSudo
}

// A commandTimeout means that a command did not end within its timeout.
type commandTimeout time.Duration

func (e commandTimeout) Error() string {
	return fmt.Sprintf("%v (%v)", host.ErrTimeout, time.Duration(e))
}
func (e commandTimeout) Is(target error) bool { return target == host.ErrTimeout }

// Upload implements Host.
func (r *remote) Upload(ctx context.Context, f host.File) error {
	e, err := r.endpoint()
	if err != nil {
		return err
	}
	if err := shell.Upload(ctx, r, f); err != nil {
		return err
	}
	e.pool.count.addStats(e.r.Name, func(s *HostStats) { s.Uploads++ })
	return nil
}

// Dial implements Host.
func (r *remote) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	e, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	cn, err := e.ensureConnected(ctx)
	if err != nil {
		return nil, err
	}
	dialCtx, cancel := context.WithTimeoutCause(ctx, e.pool.opts.DialTimeout, errDialTimeout(e.pool.opts.DialTimeout))
	defer cancel()
	e.pool.count.addStats(e.r.Name, func(s *HostStats) { s.Tunnels++ })
	c, err := cn.client.DialContext(dialCtx, network, addr)
	if err == nil {
		return newTunnel(c, func() { e.pool.idle.releaseAndClose(cn) }), nil
	}
	e.pool.idle.releaseAndClose(cn)
	return nil, e.dialError(ctx, dialCtx, cn, addr, err)
}

// dialError returns the error for a tunnel that could not be opened. ctx is that of the caller; dialCtx has the
// deadline.
func (e *endpoint) dialError(ctx, dialCtx context.Context, cn *conn, addr string, err error) error {
	var refused *ssh.OpenChannelError
	fail := &host.Error{
		Class: host.Tunnel, Host: e.r.Name, Addr: e.r.Addr(), What: "dial " + strconv.Quote(addr) + " from the host",
		Err: err,
	}
	switch {
	case ctx.Err() != nil:
		fail.Class, fail.Err = host.Canceled, context.Cause(ctx)
	case dialCtx.Err() != nil:
		fail.Err = context.Cause(dialCtx)
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		fail.Hint = "the host forbids forwarding; set AllowTcpForwarding yes in its sshd_config"
	case !errors.As(err, &refused) && cn.isLost():
		fail.Class, fail.Err = host.Lost, cn.lostError(err)
	}
	return fail
}
