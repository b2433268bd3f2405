package sshpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

var errRefused = errors.New("the SSH server refuses to run commands")

// stdinGrace is how long a command that has ended waits for the caller's Stdin to come back from a Read.
const stdinGrace = time.Second

// exec runs one command line in one channel. The error is the session's own, a lost connection or the end of ctx.
func (c *conn) exec(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) error {
	s, release, err := c.session(ctx)
	if err != nil {
		return &notStarted{err}
	}
	done := make(chan error, 1)
	go func() {
		defer release()
		defer func() { _ = s.Close() }()
		done <- c.talk(s, line, stdin, stdout, stderr)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		go func() { // may block on a dead connection
			_ = s.Signal(ssh.SIGTERM)
			_ = s.Close()
		}()
		return context.Cause(ctx)
	}
}

// talk starts the command, feeds it and waits for its end and all of its output.
func (c *conn) talk(s *ssh.Session, line string, stdin io.Reader, stdout, stderr io.Writer) error {
	s.Stdout, s.Stderr = stdout, stderr
	in, err := s.StdinPipe()
	if err != nil {
		return err
	}
	if err := s.Start(line); err != nil {
		if c.isLost() || isDisconnect(err) {
			return c.lostError(err)
		}
		return errRefused // the cause repeats the whole command
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		// a command may end without reading all
		_, _ = io.CopyBuffer(onlyWriter{in}, onlyReader{stdin}, make([]byte, 128<<10))
		_ = in.Close()
	}()
	err = s.Wait()
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) {
		err = c.lostError(err)
	}
	grace := time.NewTimer(stdinGrace)
	defer grace.Stop()
	select {
	case <-fed:
	case <-grace.C:
	}
	return err
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, so that a copy uses its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// notStarted says that the command cannot have had any effect.
type notStarted struct{ err error }

func (e *notStarted) Error() string { return fmt.Sprintf("start the command: %v", e.err) }
func (e *notStarted) Unwrap() error { return e.err }
