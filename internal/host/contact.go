package host

import "golang.org/x/crypto/ssh"

// A Policy says what happens with a host key that nobody knows. A changed key stops everything in every policy.
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

// A FirstContact is a host key met for the first time under PolicyProbe.
type FirstContact struct {
	Host        string // the target's name
	Address     string // "address:port"
	Fingerprint string // "SHA256:..."
	Key         ssh.PublicKey
}
