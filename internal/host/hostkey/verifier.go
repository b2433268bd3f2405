// Package hostkey decides whether the key that a machine shows is to be trusted: known_hosts files, pinned keys, and
// the policy for keys that nobody knows.
package hostkey

import (
	"fmt"
	"slices"
	"strings"
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
	// OnRecord is told each key that host.PolicyAcceptNew recorded; nil tells nobody. It may be called concurrently.
	OnRecord func(host.FirstContact)
}

// A Peer is a machine whose key is to be verified.
type Peer struct {
	Name    string          // for messages
	Address string          // "host:port" under which known_hosts files know it
	Pinned  []ssh.PublicKey // it must show one of these, whatever files say
	Files   []string        // known_hosts files, without the record file
}

// A Verifier decides whether a host's key is trusted, and remembers the keys met in this run.
type Verifier struct {
	opts Options

	mu    sync.Mutex
	files map[string]*knownFile
	met   map[string]*metKey // by address
	order []string           // addresses in the order they were met
}

// A metKey is a key met for the first time in this run.
type metKey struct {
	contact  host.FirstContact
	approved bool
}

// New makes a Verifier; files are read when they are first needed.
func New(o Options) *Verifier {
	return &Verifier{opts: o, files: map[string]*knownFile{}, met: map[string]*metKey{}}
}

// known gives what files say about a machine, the cluster's own file first, and whether key is revoked.
func (h *Verifier) known(p Peer, key ssh.PublicKey) (keys []*knownKey, revoked *knownKey, err error) {
	paths := p.Files
	if h.opts.RecordFile != "" {
		paths = append([]string{h.opts.RecordFile}, paths...)
	}
	for _, path := range paths {
		f := h.files[path]
		if f == nil {
			if f, err = readKnownHosts(path); err != nil {
				return nil, nil, err
			}
			h.files[path] = f
		}
		keys = append(keys, f.lookup(p.Address)...)
		if key != nil && revoked == nil {
			revoked = f.revokes(key)
		}
	}
	return keys, revoked, nil
}

func (f *knownFile) revokes(key ssh.PublicKey) *knownKey {
	if k := f.revoked[string(pubkey.Plain(key).Marshal())]; k != nil {
		return k
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		return f.revoked[string(cert.SignatureKey.Marshal())]
	}
	return nil
}

// Verify decides on the key that a machine has proved to have: pinned keys first, then the files, then what was met in
// this run, then the policy.
func (h *Verifier) Verify(p Peer, key ssh.PublicKey) error {
	recorded, err := h.judge(p, key)
	if recorded != nil && h.opts.OnRecord != nil {
		h.opts.OnRecord(*recorded)
	}
	return err
}

// judge is Verify without the news; recorded is a key just recorded.
func (h *Verifier) judge(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, revoked, err := h.known(p, key)
	if err != nil {
		return nil, err
	}
	if revoked != nil {
		return nil, &host.HostKeyChangedError{Host: p.Address, Offered: ssh.FingerprintSHA256(pubkey.Plain(key)),
			Where: []string{revoked.where}, Revoked: true}
	}
	if len(p.Pinned) > 0 {
		return nil, among(p, key, pinned(p.Pinned))
	}
	own, authorities := split(known)
	if cert, ok := key.(*ssh.Certificate); ok && len(authorities) > 0 && among(p, key, own) != nil {
		return nil, verifyCertificate(p, cert, authorities)
	}
	if len(own) > 0 {
		return nil, among(p, key, own)
	}
	if m := h.met[p.Address]; m != nil {
		return nil, among(p, key, []*knownKey{{key: m.contact.Key, where: "this run"}})
	}
	return h.decide(p, pubkey.Plain(key))
}

func pinned(keys []ssh.PublicKey) []*knownKey {
	var out []*knownKey
	for _, k := range keys {
		out = append(out, &knownKey{key: k, where: "the manifest"})
	}
	return out
}

// split tells a machine's own keys from the authorities for it.
func split(known []*knownKey) (own, authorities []*knownKey) {
	for _, k := range known {
		if k.ca {
			authorities = append(authorities, k)
		} else {
			own = append(own, k)
		}
	}
	return own, authorities
}

// among gives nil if the key is one of the known ones.
func among(p Peer, key ssh.PublicKey, known []*knownKey) error {
	e := &host.HostKeyChangedError{Host: p.Address, Offered: ssh.FingerprintSHA256(pubkey.Plain(key))}
	for _, k := range known {
		if pubkey.Equal(k.key, pubkey.Plain(key)) {
			return nil
		}
		e.Known, e.Where = append(e.Known, ssh.FingerprintSHA256(k.key)), append(e.Where, k.where)
	}
	return e
}

func verifyCertificate(p Peer, cert *ssh.Certificate, authorities []*knownKey) error {
	checker := ssh.CertChecker{IsHostAuthority: func(auth ssh.PublicKey, _ string) bool {
		return slices.ContainsFunc(authorities, func(k *knownKey) bool { return pubkey.Equal(k.key, auth) })
	}}
	if err := checker.CheckHostKey(p.Address, nil, cert); err != nil {
		return fmt.Errorf("%w: %w", among(p, cert, authorities), err)
	}
	return nil
}

// decide applies the policy to an unknown key.
func (h *Verifier) decide(p Peer, key ssh.PublicKey) (recorded *host.FirstContact, err error) {
	c := host.FirstContact{Host: p.Name, Address: p.Address, Fingerprint: ssh.FingerprintSHA256(key), Key: key}
	switch h.opts.Policy {
	case host.PolicyAcceptNew:
		if err := h.record([]host.FirstContact{c}); err != nil {
			return nil, err
		}
		h.meet(c, true)
		return &c, nil
	case host.PolicyProbe:
		h.meet(c, false)
	default:
		return nil, &host.UnknownHostKeyError{Host: c.Address, Fingerprint: c.Fingerprint, Type: key.Type()}
	}
	return nil, nil
}

func (h *Verifier) meet(c host.FirstContact, approved bool) {
	h.met[c.Address] = &metKey{contact: c, approved: approved}
	h.order = append(h.order, c.Address)
}

// Algorithms orders the host key algorithms for a machine: those of its known keys first, so that a machine with
// several keys shows the one we know. The others follow, so that a machine without it is told from one that speaks no
// SSH. Certificates are asked for only where an authority is known.
func (h *Verifier) Algorithms(p Peer) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := pinned(p.Pinned)
	if len(known) == 0 {
		known, _, _ = h.known(p, nil) // Verify reports the error
		if m := h.met[p.Address]; m != nil {
			known = append(known, &knownKey{key: m.contact.Key})
		}
	}
	var first, rest []string
	for _, a := range ssh.SupportedAlgorithms().HostKeys {
		authority := slices.ContainsFunc(known, func(k *knownKey) bool { return k.ca })
		own := slices.ContainsFunc(known, func(k *knownKey) bool { return !k.ca && k.key.Type() == keyFormat(a) })
		switch {
		case isCertificate(a) && authority, !isCertificate(a) && own:
			first = append(first, a)
		case !isCertificate(a):
			rest = append(rest, a)
		}
	}
	return append(first, rest...)
}

func isCertificate(algorithm string) bool {
	return strings.HasSuffix(algorithm, "-cert-v01@openssh.com")
}

// keyFormat is the type of the keys that an algorithm signs with.
func keyFormat(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}
