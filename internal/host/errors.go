package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Class is the kind of a failure. It determines who can resolve it.
type Class int

// The classes of errors.
const (
	Other       Class = iota
	Unreachable       // the name does not resolve, no listener, no route, no answer in time
	Auth              // no usable key, or the host refused every key
	HostKey           // unknown, changed, revoked or not yet approved host key
	Sudo              // the user may not become root without a password
	Lost              // the connection broke during an operation
	Exit              // the command ran and failed
	Timeout           // the command did not end before its deadline
	Canceled          // the context of the caller ended
	Tunnel            // the host works, but the address dialled from it cannot be reached
	Config            // the target, a file to upload or the SSH configuration is invalid
)

// String returns the class in words for messages.
func (c Class) String() string {
	names := [...]string{"other", "unreachable", "authentication", "host key", "sudo", "connection lost", "exit status",
		"timeout", "canceled", "tunnel", "configuration"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("class %d", int(c))
	}
	return names[c]
}

// Errors for errors.Is. The first four have types with details, named in the comments.
var (
	ErrHostKeyChanged = errors.New("host key changed")                // *HostKeyChangedError
	ErrUnknownHostKey = errors.New("unknown host key")                // *UnknownHostKeyError
	ErrNoSudo         = errors.New("no sudo without a password")      // *NoSudoError
	ErrKeyFile        = errors.New("unusable private key")            // *KeyFileError
	ErrConnectionLost = errors.New("SSH connection lost")             // transient; the command's result is unknown
	ErrNotApproved    = errors.New("host key not approved yet")       // first contact, and the operation has a secret
	ErrSilent         = errors.New("no answer")                       // to a dial or handshake in time
	ErrTimeout        = errors.New("deadline passed")                 // of a command
	ErrOutput         = errors.New("more output than a result holds") // MaxOutput
	ErrClosed         = errors.New("use of a closed connection pool") // after Pool.Close
)

// An Error means that it was not possible to connect to a host, log in to it or stay connected. The wrapped error
// contains the details.
type Error struct {
	Class Class
	Host  string // the host's name
	Addr  string // "user@address:port" of the hop that failed, "" if none was reached
	What  string // what was being done: "connect", "run install the kubelet"
	Hint  string // what to do about it, "" if nothing useful is known
	Err   error  // never nil
}

// Error returns one line: host, address, what failed, why, what to do.
func (e *Error) Error() string {
	if e.Addr == "" {
		return e.Host + ": " + e.Reason()
	}
	return fmt.Sprintf("%s (%s): %s", e.Host, e.Addr, e.Reason())
}

// Reason returns the text of Error without the host name, for messages that already contain it.
func (e *Error) Reason() string {
	var b strings.Builder
	if e.What != "" {
		fmt.Fprintf(&b, "%s: ", e.What)
	}
	fmt.Fprintf(&b, "%v", e.Err)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// An ExitError means that a command ran and failed.
type ExitError struct {
	Host   string
	What   string // Cmd.Name
	Code   int    // 1 to 255; 128+n after signal n
	Signal string // "KILL"; "" if a signal did not end it
	Stderr []byte // the end of its standard error, at most 8 KiB
}

// Error ends with the last lines of the command's standard error.
func (e *ExitError) Error() string {
	what := e.What
	if what == "" {
		what = "command"
	}
	how := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != "" {
		how = "killed by signal " + e.Signal
	}
	if tail := lastLines(Printable(string(e.Stderr)), 5); tail != "" {
		how += ": " + tail
	}
	return fmt.Sprintf("%s: %s: %s", e.Host, what, how)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// ClassOf returns the class of the first error in the chain of err that has one. It returns Other if there is none or
// err is nil.
func ClassOf(err error) Class {
	var e *Error
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		return Exit
	case errors.As(err, &e):
		return e.Class
	case errors.Is(err, ErrHostKeyChanged), errors.Is(err, ErrUnknownHostKey), errors.Is(err, ErrNotApproved):
		return HostKey
	case errors.Is(err, ErrNoSudo):
		return Sudo
	case errors.Is(err, ErrKeyFile):
		return Auth
	case errors.Is(err, ErrConnectionLost):
		return Lost
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Other
}

// Transient reports whether the operation may succeed if tried again, because the host was unreachable or the
// connection was lost.
func Transient(err error) bool {
	c := ClassOf(err)
	return c == Unreachable || c == Lost
}
