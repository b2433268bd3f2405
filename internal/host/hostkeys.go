package host

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// hostKeys decides whether a host's key is trusted, and remembers the keys met in this run.
type hostKeys struct {
	opts Options

	mu    sync.Mutex
	files map[string]*knownFile
	met   map[string]*metKey // by address
	order []string           // addresses in the order they were met
}

// A metKey is a key met for the first time in this run.
type metKey struct {
	contact  FirstContact
	approved bool
}

func newHostKeys(o Options) *hostKeys {
	return &hostKeys{opts: o, files: map[string]*knownFile{}, met: map[string]*metKey{}}
}

// known gives what files say about a machine, the cluster's own file first, and whether key is revoked.
func (h *hostKeys) known(r resolved, key ssh.PublicKey) (keys []*knownKey, revoked *knownKey, err error) {
	paths := r.knownFiles
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
		keys = append(keys, f.lookup(r.knownAddr())...)
		if key != nil && revoked == nil {
			revoked = f.revokes(key)
		}
	}
	return keys, revoked, nil
}

func (f *knownFile) revokes(key ssh.PublicKey) *knownKey {
	if k := f.revoked[string(plain(key).Marshal())]; k != nil {
		return k
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		return f.revoked[string(cert.SignatureKey.Marshal())]
	}
	return nil
}

// verify decides on the key that a machine has proved to have: pinned keys first, then the files, then what was met in
// this run, then the policy.
func (h *hostKeys) verify(r resolved, key ssh.PublicKey) error {
	recorded, err := h.judge(r, key)
	if recorded != nil {
		h.opts.OnRecord(*recorded)
	}
	return err
}

// judge is verify without the news; recorded is a key just recorded.
func (h *hostKeys) judge(r resolved, key ssh.PublicKey) (recorded *FirstContact, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, revoked, err := h.known(r, key)
	if err != nil {
		return nil, err
	}
	if revoked != nil {
		return nil, &HostKeyChangedError{Host: r.knownAddr(), Offered: ssh.FingerprintSHA256(plain(key)),
			Where: []string{revoked.where}, Revoked: true}
	}
	if len(r.hostKeys) > 0 {
		return nil, among(r, key, pinned(r.hostKeys))
	}
	own, authorities := split(known)
	if cert, ok := key.(*ssh.Certificate); ok && len(authorities) > 0 && among(r, key, own) != nil {
		return nil, verifyCertificate(r, cert, authorities)
	}
	if len(own) > 0 {
		return nil, among(r, key, own)
	}
	if m := h.met[r.knownAddr()]; m != nil {
		return nil, among(r, key, []*knownKey{{key: m.contact.Key, where: "this run"}})
	}
	return h.decide(r, plain(key))
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
func among(r resolved, key ssh.PublicKey, known []*knownKey) error {
	e := &HostKeyChangedError{Host: r.knownAddr(), Offered: ssh.FingerprintSHA256(plain(key))}
	for _, k := range known {
		if sameKey(k.key, plain(key)) {
			return nil
		}
		e.Known, e.Where = append(e.Known, ssh.FingerprintSHA256(k.key)), append(e.Where, k.where)
	}
	return e
}

func verifyCertificate(r resolved, cert *ssh.Certificate, authorities []*knownKey) error {
	checker := ssh.CertChecker{IsHostAuthority: func(auth ssh.PublicKey, _ string) bool {
		return slices.ContainsFunc(authorities, func(k *knownKey) bool { return sameKey(k.key, auth) })
	}}
	if err := checker.CheckHostKey(r.knownAddr(), nil, cert); err != nil {
		return fmt.Errorf("%w: %w", among(r, cert, authorities), err)
	}
	return nil
}

// decide applies the policy to an unknown key.
func (h *hostKeys) decide(r resolved, key ssh.PublicKey) (recorded *FirstContact, err error) {
	c := FirstContact{Host: r.name, Address: r.knownAddr(), Fingerprint: ssh.FingerprintSHA256(key), Key: key}
	switch h.opts.KnownHosts {
	case PolicyAcceptNew:
		if err := h.record([]FirstContact{c}); err != nil {
			return nil, err
		}
		h.meet(c, true)
		return &c, nil
	case PolicyProbe:
		h.meet(c, false)
	default:
		return nil, &UnknownHostKeyError{Host: c.Address, Fingerprint: c.Fingerprint, Type: key.Type()}
	}
	return nil, nil
}

func (h *hostKeys) meet(c FirstContact, approved bool) {
	h.met[c.Address] = &metKey{contact: c, approved: approved}
	h.order = append(h.order, c.Address)
}

// algorithms orders the host key algorithms for a machine: those of its known keys first, so that a machine with several
// keys shows the one we know. The others follow, so that a machine without it is told from one that speaks no SSH.
// Certificates are asked for only where an authority is known.
func (h *hostKeys) algorithms(r resolved) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := pinned(r.hostKeys)
	if len(known) == 0 {
		known, _, _ = h.known(r, nil) // verify reports the error
		if m := h.met[r.knownAddr()]; m != nil {
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
