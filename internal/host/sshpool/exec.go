package sshpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

var errRefused = errors.New("the SSH server refuses to run commands")

// stdinGrace is how long to wait, after a command has ended, for a Read of its Stdin to return.
const stdinGrace = time.Second

// execCommand runs one command line in one channel. The error is that of the session, a lost connection, or that of
// ctx.
func (c *conn) execCommand(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) error {
	s, release, err := c.openSession(ctx)
	if err != nil {
		return &notStarted{err}
	}
	done := make(chan error, 1)
	go func() {
		defer release()
		defer func() { _ = s.Close() }()
		done <- c.runSession(s, line, stdin, stdout, stderr)
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

// runSession starts the command, writes its input, and waits until it has ended and all output has arrived.
func (c *conn) runSession(s *ssh.Session, line string, stdin io.Reader, stdout, stderr io.Writer) error {
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
		// A command may end without reading all input.
		_, _ = io.CopyBuffer(onlyWriter{in}, onlyReader{stdin}, make([]byte, stdinChunkBytes(stdin)))
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

// stdinChunkBytes returns how many bytes of input to send at a time: many for a file, few for a script. Small packets
// save memory, because a connection keeps a buffer as large as the largest packet that it has sent.
func stdinChunkBytes(stdin io.Reader) int {
	if _, script := stdin.(*strings.Reader); script {
		return 2 << 10
	}
	return 128 << 10
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, so that a copy uses its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// notStarted means that the command did not start, so that it had no effect.
type notStarted struct{ err error }

func (e *notStarted) Error() string { return fmt.Sprintf("start the command: %v", e.err) }
func (e *notStarted) Unwrap() error { return e.err }
