// Package host is about machines that run commands: reached by SSH (package sshpool), or scripted for tests.
//
// A Host runs shell scripts as root, receives files and opens tunnels. The machine may be unreachable, refuse the
// login, have a new identity, or vanish during a command. Each of these is an error of its own class (ClassOf),
// because each needs a different reaction: wait, fix a credential, stop at once, or inspect again.
package host

import (
	"context"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"
)

// DefaultTimeout is how long a command may run if its Cmd sets no timeout.
const DefaultTimeout = 5 * time.Minute

// MaxOutput is how many bytes of a stream a Result collects. A command that prints more fails with ErrOutput and
// needs a Stdout writer instead.
const MaxOutput = 64 << 20

// MaxDials is how many hosts are dialled or logged in to at one time. A login takes eight round trips or more,
// mostly waiting. With more logins each handshake is slower, and busy machines miss its deadline.
const MaxDials = 128

// A Host is one machine that runs commands as root. All methods are safe for concurrent use.
//
// Errors name the host, the operation and what to do; ClassOf returns their class. A command that ran and failed
// returns an *ExitError. After an error of class Unreachable, Auth, HostKey, Sudo or Config, nothing was run. After
// any other error it is unknown whether the command had an effect.
type Host interface {
	// Name returns the host's name in messages: from the manifest, else its address.
	Name() string

	// Run runs one shell script as root, as one remote command, and waits for its end. Even on failure it returns the
	// output collected so far. When ctx ends or the deadline passes, Run sends TERM to the command, closes its
	// session and returns at once; the remote process may survive.
	Run(ctx context.Context, c Cmd) (Result, error)

	// Upload creates or replaces one file atomically: a reader sees either the old or the complete new content, with
	// its final mode and owner. It creates missing parent directories (0755).
	Upload(ctx context.Context, f File) error

	// Dial opens a TCP connection from the host to addr ("10.0.0.1:6443"). It lives until it is closed, even after
	// ctx ends. A deadline closes it when it passes.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)

	// Close closes the connection to the host, if there is one. A later call opens a new one.
	Close() error
}

// A FirstContacter is a Host whose key may be trusted for this run only (PolicyProbe), such as the Hosts of a Pool.
// The plan lists their fingerprints, and Pool.Approve records them.
type FirstContacter interface {
	// FirstContacts returns the keys first met on the way to this host, outermost bastion first. It is empty if every
	// key is known or approved, and before the first command.
	FirstContacts() []FirstContact
}

// Fingerprints joins the fingerprints of first contacts, in order, with ", " for a plan.
func Fingerprints(contacts []FirstContact) string {
	prints := make([]string, 0, len(contacts))
	for _, c := range contacts {
		prints = append(prints, c.Fingerprint)
	}
	return strings.Join(prints, ", ")
}

// A Cmd is one shell script with its input and output.
type Cmd struct {
	// Name describes the script in messages ("install the kubelet"). The script itself is never printed.
	Name string
	// Script is POSIX sh. It travels on standard input, so it may hold secrets: no process list, sudo log or error
	// shows it. It runs only if it arrived completely. LC_ALL is C, and PATH ends with the usual sbin directories.
	Script string
	// Args are the positional parameters $1, $2, ... They are visible in the host's process list: no secrets.
	Args []string
	// Stdin is the script's input; nil: none. After a failure, Run may return while a Read of it is still running.
	Stdin io.Reader
	// Stdout and Stderr receive output as it comes, from one goroutine each; nil collects it in the Result. They are
	// not written to after Run returns.
	Stdout, Stderr io.Writer
	// Timeout is the command's own deadline from its start, without dialling; 0 means DefaultTimeout.
	Timeout time.Duration
	// Secret means that Script or Stdin holds a secret. A host fails with ErrNotApproved if its key, or its
	// bastion's, is an unapproved first contact.
	Secret bool
}

// A Result is the outcome of a command.
type Result struct {
	Stdout, Stderr []byte // collected if the Cmd had no writer
	ExitCode       int    // 0 to 255; 128+n after signal n; -1 if the command did not run to its end
	Duration       time.Duration
}

// A File is a file to create on a host.
type File struct {
	Path  string      // absolute
	Mode  fs.FileMode // permission bits; 0 means 0600
	Owner string      // "user" or "user:group", by name or number; "" means root:root
	Size  int64       // exact number of bytes in Content; a mismatch fails and keeps the old file
	// Content is read once, in order.
	Content io.Reader
	// Progress, if set, is called with the number of bytes sent so far, from one goroutine, at most about a hundred
	// times a second.
	Progress func(sent int64)
}
