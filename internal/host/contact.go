package host

import (
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Policy says what happens with a host key that nobody knows. A changed key stops everything in every
// policy, unless it was accepted for its machine (Target.Accept).
type Policy int

// The policies for unknown host keys.
const (
	// PolicyStrict refuses (*UnknownHostKeyError).
	PolicyStrict Policy = iota
	// PolicyAcceptNew records the key in Options.RecordFile, calls Options.OnRecord and goes on.
	PolicyAcceptNew
	// PolicyProbe trusts the key for this run only and lists it in Pool.FirstContacts, to be shown in a plan. Until
	// Pool.Approve, the host takes no upload and no command marked Secret (ErrNotApproved).
	PolicyProbe
)

// AcceptFlag is how an operator accepts another key than the known one of a machine: AcceptFlag NAME, or, if it must be
// a certain key, AcceptFlag NAME=SHA256:...
const AcceptFlag = "--accept-host-key"

// AcceptShown as Target.Accept takes whatever key the machine shows, as far as somebody will see and approve it: under
// PolicyProbe.
const AcceptShown = "shown"

// A FirstContact is a host key that nobody has approved for its machine: met for the first time under PolicyProbe, or
// accepted in place of known ones.
type FirstContact struct {
	Host        string // the target's name
	Address     string // "address:port"
	Fingerprint string // "SHA256:..."
	Key         ssh.PublicKey
	AcceptAs    string     // Target.AcceptAs
	Replaces    []KnownKey // the keys in whose place it is accepted; empty for a machine that was not known
}

// A KnownKey is a host key that is known, and since where.
type KnownKey struct {
	Fingerprint string // "SHA256:..."
	Where       string // "file:line", "the manifest", "this run"
}

// String is "SHA256:... (file:line)".
func (k KnownKey) String() string { return k.Fingerprint + " (" + k.Where + ")" }

// KnownKeys lists keys and where they stand, ", " between.
func KnownKeys(keys []KnownKey) string {
	texts := make([]string, 0, len(keys))
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	return strings.Join(texts, ", ")
}
