package hostkey

import (
	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
)

// knowledge is what files say about a machine.
type knowledge struct {
	own         []*knownKey // its keys
	authorities []*knownKey // authorities whose certificates count for it
	revoked     []*knownKey // revoked keys; only entries about the key in question
}

// Check checks the files of known and revoked keys without contacting the machine. Its error is a *host.Error.
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

// loadFiles reads the files about a machine that were not read yet. All are needed to know what is revoked.
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

// knownKeys returns what files say about a machine, the cluster's own file first, and where key, if any, is revoked.
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

// replacedFingerprints returns the fingerprints that accepted keys have replaced, from the lines of the record file
// in order.
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
