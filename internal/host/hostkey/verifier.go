// Package hostkey decides whether to trust a machine's key, by known_hosts files, pinned keys, and the policy for
// unknown keys.
package hostkey

import (
	"encoding/base64"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// Options say where to record keys and how to treat unknown ones.
type Options struct {
	// RecordFile is our own known_hosts file. It is read first, and accepted and approved keys are appended to it
	// (created with mode 0600). "" keeps these keys in memory only.
	RecordFile string
	Policy     host.Policy
	// OnRecord is called with each key recorded without Approve, possibly concurrently. Nil disables it.
	OnRecord func(host.FirstContact)
}

// A Peer is a machine whose key must be verified.
type Peer struct {
	Name    string          // for messages
	Address string          // "host:port" in known_hosts files
	Pinned  []ssh.PublicKey // the only accepted keys, whatever files contain
	Files   []string        // known_hosts files, without the record file
	// Revocations is a file of revoked public keys; "": none.
	Revocations string
	// Strict refuses an unknown key under every policy.
	Strict bool
	// Algorithms are the only host key algorithms to accept; nil: all supported ones.
	Algorithms []string
	// Accept and AcceptAs are as in host.Target.
	Accept, AcceptAs string
}

// A Verifier decides whether to trust the key of a machine. It stores the keys that it has seen in this run.
type Verifier struct {
	opts Options

	mu          sync.Mutex
	files       map[string]*knownFile  // by path
	revocations map[string][]*knownKey // by path
	met         map[string]*metKey     // by address
	order       []string               // addresses in the order they were met
}

// A metKey is a key first seen in this run.
type metKey struct {
	contact  host.FirstContact
	approved bool
}

// New returns a Verifier, which reads files when they are needed.
func New(o Options) *Verifier {
	return &Verifier{opts: o, files: map[string]*knownFile{}, revocations: map[string][]*knownKey{},
		met: map[string]*metKey{}}
}

// Verify returns nil if the key of a machine can be trusted; the machine has proved that it owns the key. Revocations
// take precedence over pinned keys, then come keys seen in this run, files, accepted keys, and finally the policy.
func (h *Verifier) Verify(p Peer, key ssh.PublicKey) error {
	recorded, err := h.verifyKey(p, key)
	if recorded != nil && h.opts.OnRecord != nil {
		h.opts.OnRecord(*recorded)
	}
	return err
}

// verifyKey does the same as Verify without calling OnRecord. recorded is the key that it recorded, or nil if it
// recorded none.
func (h *Verifier) verifyKey(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
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
		return nil, findPinnedKey(p, key)
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

// findPinnedKey returns nil if the manifest pins the key. AcceptFlag has no effect on pinned keys.
func findPinnedKey(p Peer, key ssh.PublicKey) error {
	pinned := pinnedKeys(p.Pinned)
	if findKey(p, key, pinned) == nil {
		return nil
	}
	e := mismatchError(p, key, pinned)
	e.Pinned = base64.StdEncoding.EncodeToString(pubkey.Plain(key).Marshal())
	return e
}

// findKey returns nil if the key is one of the known ones, and a *host.HostKeyChangedError otherwise.
func findKey(p Peer, key ssh.PublicKey, known []*knownKey) error {
	if slices.ContainsFunc(known, func(k *knownKey) bool { return pubkey.Equal(k.key, pubkey.Plain(key)) }) {
		return nil
	}
	return mismatchError(p, key, known)
}

// mismatchError returns the error for a key that is not one of the known ones.
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

// policyFor returns the policy for unknown keys of this machine.
func (h *Verifier) policyFor(p Peer) host.Policy {
	if p.Strict {
		return host.PolicyStrict
	}
	return h.opts.Policy
}

// acceptChanged accepts a changed key if Accept allows it, and returns e otherwise. If the operator gave the
// fingerprint, the key is recorded at once. If not, an operator must first approve the key in a plan.
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
		return nil, wrongFingerprintError(p, e)
	}
	return h.trustKey(p, key, e.Known, h.opts.Policy != host.PolicyProbe)
}

// wrongFingerprintError returns the error for a key that does not have the fingerprint given by the operator.
func wrongFingerprintError(p Peer, e *host.HostKeyChangedError) error {
	e.Known = append(e.Known, host.KnownKey{Fingerprint: p.Accept, Where: host.AcceptFlag})
	e.AcceptAs = "" // do not suggest accepting the key of a wrong machine, or a wrong fingerprint
	return e
}

// decideUnknown applies the policy to an unknown key.
func (h *Verifier) decideUnknown(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
	fingerprint := ssh.FingerprintSHA256(key)
	if p.Accept != "" && p.Accept != host.AcceptShown && p.Accept != fingerprint {
		return nil, wrongFingerprintError(p, mismatchError(p, key, nil))
	}
	policy := h.policyFor(p)
	if policy == host.PolicyStrict {
		return nil, &host.UnknownHostKeyError{Host: p.Address, Fingerprint: fingerprint, Type: key.Type()}
	}
	return h.trustKey(p, key, nil, policy == host.PolicyAcceptNew)
}

// trustKey trusts a key in this run. It records the key unless an operator must approve it first.
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
