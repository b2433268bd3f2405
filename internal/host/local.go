package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"syscall"
	"time"
)

// killAfter is how long a local command has to end after TERM.
const killAfter = 5 * time.Second

// LocalOptions configure the machine we run on.
type LocalOptions struct {
	Name   string // for messages; "" means "localhost"
	AsUser bool   // run commands as the current user instead of root
}

// NewLocal is the machine we run on. Commands run as root, by sudo if we are not root, unless AsUser.
func NewLocal(o LocalOptions) Host {
	l := &local{name: o.Name, up: asIs}
	if l.name == "" {
		l.name = "localhost"
	}
	if os.Geteuid() != 0 && !o.AsUser {
		l.up = checkSudo
	}
	return l
}

type local struct {
	name string
	up   elevation
}

func (l *local) Name() string { return l.name }
func (l *local) Close() error { return nil }

// Dial implements Host.
func (l *local) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, &Error{Class: Tunnel, Host: l.name, What: "dial " + addr, Err: err}
	}
	return c, nil
}

// Upload implements Host.
func (l *local) Upload(ctx context.Context, f File) error { return upload(ctx, l, f) }

// Run implements Host.
func (l *local) Run(ctx context.Context, c Cmd) (Result, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, commandTimeout(timeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdin, n := wire(c.Script, c.Stdin)
	stdout, stderr := &output{w: c.Stdout, stop: stop}, &output{w: c.Stderr, stop: stop}
	words := argv(l.up, n, c.Args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // this is what it is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	start := time.Now()
	err := cmd.Run()
	res := Result{Duration: time.Since(start), ExitCode: -1}
	var tail []byte
	res.Stdout, _ = stdout.shut()
	res.Stderr, tail = stderr.shut()
	err = l.outcome(ctx, c, err, &res, tail)
	return res, err
}

// outcome turns the end of the process into the errors of a Host.
func (l *local) outcome(ctx context.Context, c Cmd, err error, res *Result, tail []byte) error {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		class, _ := explain(context.Cause(ctx), resolved{})
		return &Error{Class: class, Host: l.name, What: what(c), Err: context.Cause(ctx)}
	case errors.As(err, &exit):
		res.ExitCode = exit.ExitCode()
		failed := &ExitError{Host: l.name, What: c.Name, Code: res.ExitCode, Stderr: tail}
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			res.ExitCode = 128 + int(ws.Signal())
			failed.Code, failed.Signal = res.ExitCode, fmt.Sprint(ws.Signal())
		}
		if detail, no := noSudo(res.ExitCode, tail); no && l.up == checkSudo {
			e := &NoSudoError{Host: l.name, User: userName(), Detail: detail}
			return &Error{Class: Sudo, Host: l.name, What: what(c), Hint: e.hint(), Err: e}
		}
		return failed
	case err != nil && !errors.Is(err, syscall.EPIPE): // a script need not read all of its input
		return &Error{Class: Other, Host: l.name, What: what(c), Err: err}
	}
	res.ExitCode = 0
	return nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Geteuid())
}
