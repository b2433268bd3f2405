// Package host is somewhere commands run: a machine reached by SSH (package sshpool), or a scripted one of tests.
//
// A Host runs shell scripts as root, receives files and opens tunnels. The machine behind it may be unreachable,
// may refuse us, may have changed its identity, or may vanish in the middle of a command; each of these is a
// different class of error (ClassOf), because each asks for something different: wait, fix a credential, stop at
// once, look again.
package host

import (
	"context"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"
)

// DefaultTimeout is how long a command may run when its Cmd does not say.
const DefaultTimeout = 5 * time.Minute

// MaxOutput is how many bytes of a stream a Result collects. A command that prints more fails with ErrOutput; give it a
// Stdout writer instead.
const MaxOutput = 64 << 20

// MostDials is how many hosts are dialled, or logged in to, at one time. A login takes eight round trips or more, most
// of which are waiting; more at one time make each handshake slower, and busy machines miss its deadline.
const MostDials = 128

// A Host is one machine on which commands run as root. All methods may be called concurrently.
//
// Errors name the host, what was being done and what to do about it; ClassOf tells their class. A command that ran and
// failed gives an *ExitError; after any other error it is not known whether the command had an effect, unless the class
// is Unreachable, Auth, HostKey, Sudo or Config: then nothing was run.
type Host interface {
	// Name is how messages call the host: its name in the manifest, else its address.
	Name() string

	// Run runs one shell script as root and waits for its end, as one remote command. It returns what was collected
	// even when it fails. When ctx ends or the deadline passes, the command is sent TERM, its session is closed and Run
	// returns at once; the remote process may outlive it.
	Run(ctx context.Context, c Cmd) (Result, error)

	// Upload creates or replaces one file as a whole: a reader of the path sees the old content or the new, complete
	// and with its final mode and owner, never anything between. Missing parent directories are created (0755).
	Upload(ctx context.Context, f File) error

	// Dial opens a TCP connection from the host to addr ("10.0.0.1:6443"). The connection lives until it is closed,
	// whatever becomes of ctx. A deadline set on it closes it when it passes.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)

	// Close ends the connection to the host, if there is one. A later call opens another.
	Close() error
}

// A FirstContacter is a Host whose key may be trusted for this run only (PolicyProbe). Hosts of a Pool are; the plan
// lists their fingerprints, and Pool.Approve records them.
type FirstContacter interface {
	// FirstContacts tells the keys met for the first time on the way to this host, outermost bastion first; empty when
	// every key was known or has been approved, or before the first command.
	FirstContacts() []FirstContact
}

// Fingerprints are those of first contacts as a plan lists them, in their order, ", " between.
func Fingerprints(contacts []FirstContact) string {
	prints := make([]string, 0, len(contacts))
	for _, c := range contacts {
		prints = append(prints, c.Fingerprint)
	}
	return strings.Join(prints, ", ")
}

// A Cmd is one shell script with what it reads and writes.
type Cmd struct {
	// Name says what the script does, for messages ("install the kubelet"). The script itself is never printed.
	Name string
	// Script is POSIX sh. It travels on the standard input, so it may hold secrets: no process list, sudo log or error
	// shows it. It runs only if all of it arrived. LC_ALL is C, and PATH ends with the usual sbin directories.
	Script string
	// Args are the positional parameters $1, $2, ... They are visible in the host's process list: no secrets.
	Args []string
	// Stdin is what the script reads, nil for nothing. Run may still be in a Read of it for a moment after a failure.
	Stdin io.Reader
	// Stdout and Stderr receive output as it comes, from one goroutine each; nil collects it in the Result. They are
	// not written to after Run returned.
	Stdout, Stderr io.Writer
	// Timeout is the command's own deadline, counted from its start (not from the dialling); 0 means DefaultTimeout.
	Timeout time.Duration
	// Secret says that Script or Stdin carries a secret: it is refused (ErrNotApproved) on a host whose key, or whose
	// bastion's key, is a first contact that nobody approved.
	Secret bool
}

// A Result is what a command left behind.
type Result struct {
	Stdout, Stderr []byte // collected where the Cmd had no writer
	ExitCode       int    // 0 to 255; 128+n after signal n; -1 if the command did not run to its end
	Duration       time.Duration
}

// A File is a file to be created on a host.
type File struct {
	Path  string      // absolute
	Mode  fs.FileMode // permission bits; 0 means 0600
	Owner string      // "user" or "user:group", by name or number; "" means root:root
	Size  int64       // exact number of bytes in Content; another number fails and leaves the old file
	// Content is read once, in order.
	Content io.Reader
	// Progress, if set, is called with the number of bytes sent so far, from one goroutine, some hundred times a
	// second at most.
	Progress func(sent int64)
}
