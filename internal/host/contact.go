package host

import (
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Policy says what to do with an unknown host key. A changed key is an error under every policy, unless it was
// accepted for the machine (Target.Accept).
type Policy int

// The policies for unknown host keys.
const (
	// PolicyStrict refuses (*UnknownHostKeyError).
	PolicyStrict Policy = iota
	// PolicyAcceptNew records the key in Options.RecordFile, calls Options.OnRecord and continues.
	PolicyAcceptNew
	// PolicyProbe trusts the key for this run only and lists it in Pool.FirstContacts for the plan. Until
	// Pool.Approve, the host accepts no upload and no command marked Secret (ErrNotApproved).
	PolicyProbe
)

// AcceptFlag is the flag with which an operator accepts a changed key: AcceptFlag NAME accepts any key of a machine,
// AcceptFlag NAME=SHA256:... only that key.
const AcceptFlag = "--accept-host-key"

// AcceptShown accepts any key of the machine, as the value of Target.Accept. It has an effect only under PolicyProbe,
// where an operator sees and approves the key.
const AcceptShown = "shown"

// A FirstContact is an unapproved host key: new under PolicyProbe, or accepted in place of known ones.
type FirstContact struct {
	Host        string // the target's name
	Address     string // "address:port"
	Fingerprint string // "SHA256:..."
	Key         ssh.PublicKey
	AcceptAs    string     // Target.AcceptAs
	Replaces    []KnownKey // the known keys that it replaces; empty for an unknown machine
}

// A KnownKey is a known host key and its source.
type KnownKey struct {
	Fingerprint string // "SHA256:..."
	Where       string // "file:line", "the manifest", "this run"
}

// String returns "SHA256:... (file:line)".
func (k KnownKey) String() string { return k.Fingerprint + " (" + k.Where + ")" }

// KnownKeys joins keys and their sources with ", ".
func KnownKeys(keys []KnownKey) string {
	texts := make([]string, 0, len(keys))
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	return strings.Join(texts, ", ")
}
