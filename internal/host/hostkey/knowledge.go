package hostkey

import (
	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
)

// knowledge is what the files contain about a machine.
type knowledge struct {
	own         []*knownKey // its keys
	authorities []*knownKey // authorities whose certificates count for it
	revoked     []*knownKey // the entries that revoke the key being verified
}

// Check returns an error if the files of known and revoked keys for a machine cannot be read. It does not connect to
// the machine. The error is a *host.Error.
func (h *Verifier) Check(p Peer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loadFiles(p)
}

// knownHostsFiles returns the known_hosts files for a machine, the cluster's own first.
func (h *Verifier) knownHostsFiles(p Peer) []string {
	if h.opts.RecordFile == "" {
		return p.Files
	}
	return append([]string{h.opts.RecordFile}, p.Files...)
}

// loadFiles reads the files for a machine that were not read yet. It fails if one cannot be read, because a revoked key
// would then be accepted.
func (h *Verifier) loadFiles(p Peer) (err error) {
	fail := func(err error) error {
		return &host.Error{Class: host.Config, Host: p.Name, What: "find the known host keys", Err: err}
	}
	for _, path := range h.knownHostsFiles(p) {
		if h.files[path] != nil {
			continue
		}
		if h.files[path], err = readKnownHosts(path); err != nil {
			delete(h.files, path)
			return fail(err)
		}
	}
	if _, have := h.revocations[p.Revocations]; p.Revocations == "" || have {
		return nil
	}
	keys, err := readRevocations(p.Revocations)
	if err != nil {
		return fail(err)
	}
	h.revocations[p.Revocations] = keys
	return nil
}

// knownKeys returns the known keys of a machine, those in the record file of the cluster first. If key is not nil, it
// also returns the entries that revoke it.
func (h *Verifier) knownKeys(p Peer, key ssh.PublicKey) (k knowledge, err error) {
	if err := h.loadFiles(p); err != nil {
		return k, err
	}
	replaced := map[string]bool{}
	var all []*knownKey
	for _, path := range h.knownHostsFiles(p) {
		f := h.files[path]
		found := f.lookupKeys(p.Address)
		if path == h.opts.RecordFile {
			replaced = replacedFingerprints(found)
		}
		all = append(all, found...)
		if key != nil {
			k.revokeKey(f.revokingLine(p.Address, key))
		}
	}
	for _, known := range all {
		switch {
		case known.marker == certAuthority:
			k.authorities = append(k.authorities, known)
		case !replaced[ssh.FingerprintSHA256(known.key)]:
			k.own = append(k.own, known)
		}
	}
	for _, r := range h.revocations[p.Revocations] {
		if key != nil && r.isIn(key) {
			k.revokeKey(r)
		}
	}
	return k, nil
}

func (k *knowledge) revokeKey(by *knownKey) {
	if by != nil {
		k.revoked = append(k.revoked, by)
	}
}

// replacedFingerprints returns the fingerprints of keys that were replaced by accepted ones. recorded are the lines of
// the record file, in order.
func replacedFingerprints(recorded []*knownKey) map[string]bool {
	replaced := map[string]bool{}
	for _, k := range recorded {
		for _, fingerprint := range k.replaces {
			replaced[fingerprint] = true
		}
		delete(replaced, ssh.FingerprintSHA256(k.key))
	}
	return replaced
}
