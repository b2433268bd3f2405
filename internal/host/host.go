// Package host defines the interface to a machine that runs commands. Package sshpool implements it over SSH.
//
// A Host runs shell scripts as root, receives files and opens tunnels. The machine may be unreachable, refuse the
// login, show another host key, or become unreachable during a command. Each of these errors has its own class
// (ClassOf), because callers react differently: they wait, ask for another credential, stop at once, or probe again.
package host

import (
	"context"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"
)

// DefaultTimeout is the timeout of a Cmd that does not set one.
const DefaultTimeout = 5 * time.Minute

// MaxOutput is the maximum number of bytes of a stream that a Result collects. A command that prints more fails with
// ErrOutput; set Cmd.Stdout for such commands.
const MaxOutput = 64 << 20

// MaxDials is the maximum number of hosts that are dialled or logged in to at a time. A login takes at least eight
// round trips and mostly waits. With more logins at a time, each handshake would be slower, and busy machines would
// miss its deadline.
const MaxDials = 128

// A Host is one machine that runs commands as root. All methods are safe for concurrent use.
//
// Errors name the host, the operation and what to do; ClassOf returns their class. A command that ran and failed
// returns an *ExitError. After an error of class Unreachable, Auth, HostKey, Sudo or Config, nothing was run. After
// any other error it is unknown whether the command had an effect.
type Host interface {
	// Name returns the name of the host for messages: the name in the manifest, otherwise the address.
	Name() string

	// Run runs one shell script as root in one remote command and waits until it ends. Even on failure it returns the
	// output collected so far. When ctx ends or the timeout passes, Run sends TERM to the command, closes its session
	// and returns at once; the remote process may continue.
	Run(ctx context.Context, c Cmd) (Result, error)

	// Upload creates or replaces one file atomically: readers see either the old or the complete new content, with its
	// final mode and owner. It creates missing parent directories.
	Upload(ctx context.Context, f File) error

	// Dial opens a TCP connection from the host to addr ("10.0.0.1:6443"). The connection stays open until it is
	// closed, even after ctx ends. When one of its deadlines passes, it is closed.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)

	// Close closes the connection to the host, if there is one. A later call opens a new one.
	Close() error
}

// A FirstContacter is a Host that can report unapproved host keys, which are trusted only for this run (PolicyProbe).
// The Hosts of a Pool implement it. The plan lists the fingerprints, and Pool.Approve records the keys.
type FirstContacter interface {
	// FirstContacts returns the unapproved keys of this host and its bastions, the outermost bastion first. It returns
	// none before the first command, or if every key is known or approved.
	FirstContacts() []FirstContact
}

// Fingerprints returns the fingerprints of first contacts, in order, joined with ", ". Plans contain them in this form.
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
	// Script is POSIX sh. It can contain secrets, because it is sent on standard input and does not appear in process
	// lists, sudo logs or errors. It runs only if it arrives completely. LC_ALL is C, and PATH ends with the usual sbin
	// directories.
	Script string
	// Args are the positional parameters $1, $2, ... They must not contain secrets, because they are visible in the
	// process list of the host.
	Args []string
	// Stdin is the input of the script; nil: none. After a failure, Run can return while a Read of Stdin is still
	// running.
	Stdin io.Reader
	// Stdout and Stderr receive output as it arrives, from one goroutine each. Nil collects it in the Result. Nothing
	// is written to them after Run returns.
	Stdout, Stderr io.Writer
	// Timeout limits the time from the start of the command, not counting dialling; 0 means DefaultTimeout.
	Timeout time.Duration
	// Secret means that Script or Stdin contains a secret. Run then fails with ErrNotApproved, before it sends
	// anything, if the key of the host or of a bastion is not approved.
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
