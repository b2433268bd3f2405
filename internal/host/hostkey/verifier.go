// Package hostkey decides whether the key that a machine shows is to be trusted: known_hosts files, pinned keys, and
// the policy for keys that nobody knows.
package hostkey

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// Options say which keys are recorded and what happens to unknown ones.
type Options struct {
	// RecordFile is a known_hosts file of one's own: read first, and where accepted and approved keys go (created
	// 0600). "" keeps them in memory.
	RecordFile string
	Policy     host.Policy
	// OnRecord is told each key that was recorded without Approve; nil tells nobody. It may be called concurrently.
	OnRecord func(host.FirstContact)
}

// A Peer is a machine whose key is to be verified.
type Peer struct {
	Name    string          // for messages
	Address string          // "host:port" under which known_hosts files know it
	Pinned  []ssh.PublicKey // it must show one of these, whatever files say
	Files   []string        // known_hosts files, without the record file
	// Revocations is a file of public keys that it must not show; "" is none.
	Revocations string
	// Strict refuses an unknown key, whatever the policy is.
	Strict bool
	// Algorithms are the only ones by which it may prove to have its key; nil is all that are supported.
	Algorithms []string
	// Accept and AcceptAs are as in host.Target.
	Accept, AcceptAs string
}

// A Verifier decides whether a host's key is trusted, and remembers the keys met in this run.
type Verifier struct {
	opts Options

	mu          sync.Mutex
	files       map[string]*knownFile  // by path
	revocations map[string][]*knownKey // by path
	met         map[string]*metKey     // by address
	order       []string               // addresses in the order they were met
}

// A metKey is a key met for the first time in this run.
type metKey struct {
	contact  host.FirstContact
	approved bool
}

// New makes a Verifier; files are read when they are first needed.
func New(o Options) *Verifier {
	return &Verifier{opts: o, files: map[string]*knownFile{}, revocations: map[string][]*knownKey{},
		met: map[string]*metKey{}}
}

// Verify decides on the key that a machine has proved to have: revocations first, then pinned keys, what was met in
// this run, the files, and then what is accepted and the policy.
func (h *Verifier) Verify(p Peer, key ssh.PublicKey) error {
	recorded, err := h.judgeKey(p, key)
	if recorded != nil && h.opts.OnRecord != nil {
		h.opts.OnRecord(*recorded)
	}
	return err
}

// judgeKey is Verify without the news; recorded is a key just recorded.
func (h *Verifier) judgeKey(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, err := h.knownKeys(p, key)
	if err != nil {
		return nil, err
	}
	if len(known.revoked) > 0 {
		e := mismatchError(p, key, known.revoked)
		e.Revoked = true
		return nil, e
	}
	if len(p.Pinned) > 0 {
		return nil, findKey(p, key, pinnedKeys(p.Pinned))
	}
	if m := h.met[p.Address]; m != nil {
		return nil, findKey(p, key, []*knownKey{{key: m.contact.Key, where: "this run"}})
	}
	isOwn := findKey(p, key, known.own) == nil
	if cert, ok := key.(*ssh.Certificate); ok && len(known.authorities) > 0 && !isOwn {
		return nil, verifyCertificate(p, cert, known.authorities)
	}
	switch {
	case isOwn:
		return nil, nil
	case len(known.own) > 0:
		return h.acceptChanged(p, pubkey.Plain(key), mismatchError(p, key, known.own))
	}
	return h.decideUnknown(p, pubkey.Plain(key))
}

func pinnedKeys(keys []ssh.PublicKey) []*knownKey {
	var out []*knownKey
	for _, k := range keys {
		out = append(out, &knownKey{key: k, where: "the manifest"})
	}
	return out
}

// findKey gives nil if the key is one of the known ones.
func findKey(p Peer, key ssh.PublicKey, known []*knownKey) error {
	if slices.ContainsFunc(known, func(k *knownKey) bool { return pubkey.Equal(k.key, pubkey.Plain(key)) }) {
		return nil
	}
	return mismatchError(p, key, known)
}

// mismatchError is the error of a key that is not as it is known.
func mismatchError(p Peer, key ssh.PublicKey, known []*knownKey) *host.HostKeyChangedError {
	e := &host.HostKeyChangedError{Host: p.Address, Offered: ssh.FingerprintSHA256(pubkey.Plain(key))}
	for _, k := range known {
		e.Known = append(e.Known, host.KnownKey{Fingerprint: ssh.FingerprintSHA256(k.key), Where: k.where})
	}
	return e
}

func verifyCertificate(p Peer, cert *ssh.Certificate, authorities []*knownKey) error {
	checker := ssh.CertChecker{IsHostAuthority: func(auth ssh.PublicKey, _ string) bool {
		return slices.ContainsFunc(authorities, func(k *knownKey) bool { return pubkey.Equal(k.key, auth) })
	}}
	if err := checker.CheckHostKey(p.Address, nil, cert); err != nil {
		return fmt.Errorf("%w: %w", mismatchError(p, cert, authorities), err)
	}
	return nil
}

// policyFor is what happens with a key of this machine that nobody knows.
func (h *Verifier) policyFor(p Peer) host.Policy {
	if p.Strict {
		return host.PolicyStrict
	}
	return h.opts.Policy
}

// acceptChanged applies Accept to a key that is not the known one. A fingerprint that the operator has given is as good
// as a line of known_hosts that the operator has corrected; without one, somebody must see the key first, in a plan.
func (h *Verifier) acceptChanged(p Peer, key ssh.PublicKey, e *host.HostKeyChangedError) (*host.FirstContact, error) {
	e.AcceptAs = p.AcceptAs
	switch p.Accept {
	case e.Offered:
	case host.AcceptShown:
		if h.policyFor(p) != host.PolicyProbe {
			return nil, e
		}
	case "":
		return nil, e
	default:
		return nil, otherThanGiven(p, e)
	}
	return h.trustKey(p, key, e.Known, h.opts.Policy != host.PolicyProbe)
}

// otherThanGiven is the error of a key that is another one than the operator said it must be.
func otherThanGiven(p Peer, e *host.HostKeyChangedError) error {
	e.Known = append(e.Known, host.KnownKey{Fingerprint: p.Accept, Where: host.AcceptFlag})
	e.AcceptAs = "" // it is the wrong machine, or the wrong fingerprint: nothing to be accepted at once
	return e
}

// decideUnknown applies the policy to an unknown key.
func (h *Verifier) decideUnknown(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
	fingerprint := ssh.FingerprintSHA256(key)
	if p.Accept != "" && p.Accept != host.AcceptShown && p.Accept != fingerprint {
		return nil, otherThanGiven(p, mismatchError(p, key, nil))
	}
	policy := h.policyFor(p)
	if policy == host.PolicyStrict {
		return nil, &host.UnknownHostKeyError{Host: p.Address, Fingerprint: fingerprint, Type: key.Type()}
	}
	return h.trustKey(p, key, nil, policy == host.PolicyAcceptNew)
}

// trustKey trusts a key in this run, and records it if nobody is to approve it first.
func (h *Verifier) trustKey(p Peer, key ssh.PublicKey, replaces []host.KnownKey, record bool) (*host.FirstContact,
	error) {
	c := host.FirstContact{Host: p.Name, Address: p.Address, Fingerprint: ssh.FingerprintSHA256(key), Key: key,
		AcceptAs: p.AcceptAs, Replaces: replaces}
	if record {
		if err := h.recordKeys([]host.FirstContact{c}); err != nil {
			return nil, err
		}
	}
	h.met[c.Address] = &metKey{contact: c, approved: record}
	h.order = append(h.order, c.Address)
	if !record {
		return nil, nil
	}
	return &c, nil
}
