package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// maxKeys is how many keys are offered: sshd ends the connection after six failures (MaxAuthTries).
const maxKeys = 6

var (
	errNoKey = errors.New("no private key to log in with")
	errAgent = errors.New("cannot use the SSH agent")
)

// credentials are the keys to offer to one host, in order.
type credentials struct {
	signers []ssh.Signer
	agent   net.Conn // must stay open while the signers are used; nil without agent
}

func (c credentials) close() {
	if c.agent != nil {
		_ = c.agent.Close()
	}
}

// offered describes the keys for a message.
func (c credentials) offered() []string {
	var out []string
	for _, s := range c.signers {
		k := s.PublicKey()
		if cert, ok := k.(*ssh.Certificate); ok {
			out = append(out, fmt.Sprintf("certificate %q for %s", cert.KeyId, ssh.FingerprintSHA256(cert.Key)))
			continue
		}
		out = append(out, k.Type()+" "+ssh.FingerprintSHA256(k))
	}
	return out
}

// credentials collects what to offer to a host: its own keys first, by the agent where that holds them, then the agent's
// others, never more than maxKeys. If the agent holds a key that was named for the host, nothing else is offered.
func (p *Pool) credentials(r resolved) (credentials, error) {
	inAgent, c, err := p.agentKeys(r)
	if err != nil {
		return credentials{}, err
	}
	auth := credentials{agent: c}
	own, sure, err := p.ownKeys(r, inAgent)
	if err == nil {
		auth.signers = own
		if !sure && !r.only {
			auth.signers = append(auth.signers, inAgent...)
		}
		auth.signers = distinct(auth.signers)
		err = p.addCertificate(r, inAgent, &auth)
	}
	if err == nil && len(auth.signers) == 0 {
		err = p.lastResort(r, &auth)
	}
	if err != nil {
		auth.close()
		return credentials{}, err
	}
	auth.signers = auth.signers[:min(len(auth.signers), maxKeys)]
	return auth, nil
}

// agentKeys lists the agent's keys. An agent that nobody asked for may be missing.
func (p *Pool) agentKeys(r resolved) ([]ssh.Signer, net.Conn, error) {
	if r.agent == "" {
		if r.agentAsked {
			return nil, nil, fmt.Errorf("%w: no socket is set", errAgent)
		}
		return nil, nil, nil
	}
	c, err := net.DialTimeout("unix", r.agent, p.opts.DialTimeout) //nolint:noctx // bounded; nothing is under way yet that could be given up
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(p.opts.DialTimeout))
		var keys []ssh.Signer
		if keys, err = agent.NewClient(c).Signers(); err == nil {
			_ = c.SetDeadline(time.Time{}) // signing may wait for a person; the login has its own deadline
			return keys, c, nil
		}
		_ = c.Close()
	}
	if r.agentAsked {
		return nil, nil, fmt.Errorf("%w: %w", errAgent, err)
	}
	return nil, nil, nil
}

// ownKeys are the host's identities; sure says that one that is meant for it is in the agent, so that no other key is
// needed. Of the usual files, which nobody named, those that are locked or unusable are left alone.
func (p *Pool) ownKeys(r resolved, inAgent []ssh.Signer) (own []ssh.Signer, sure bool, err error) {
	var held []ssh.Signer
	for _, path := range r.identities {
		f, err := p.keys.file(path)
		if r.optional && (!r.named || errors.Is(err, fs.ErrNotExist)) && err != nil {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if h := holding(inAgent, f.pub); len(h) > 0 {
			held = append(held, h...)
			continue
		}
		if !r.named && f.locked != nil {
			continue
		}
		s, err := p.keys.unlock(f)
		if err != nil {
			if len(held) > 0 {
				continue
			}
			return nil, false, err
		}
		own = append(own, s)
	}
	if r.named && len(held) > 0 {
		return held, true, nil
	}
	return append(held, own...), false, nil
}

// lastResort unlocks the keys that were left alone, now that there is no other.
func (p *Pool) lastResort(r resolved, auth *credentials) error {
	var missing error
	for _, path := range r.identities {
		f, err := p.keys.file(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		s, err := p.keys.unlock(f)
		if err != nil {
			return err
		}
		auth.signers = append(auth.signers, s)
	}
	switch {
	case len(auth.signers) > 0:
		return nil
	case r.named && missing != nil:
		return missing
	}
	return errNoKey
}

// addCertificate puts the host's user certificate before the keys.
func (p *Pool) addCertificate(r resolved, inAgent []ssh.Signer, auth *credentials) error {
	path, implied := r.certFile, false
	if path == "" && len(r.identities) == 1 {
		path, implied = r.identities[0]+"-cert.pub", true
		if _, err := os.Stat(path); err != nil {
			return nil //nolint:nilerr // most keys have none
		}
	}
	if path == "" {
		return nil
	}
	cert, err := readCertificate(path, time.Now())
	if implied && err != nil {
		return nil //nolint:nilerr // as ssh does: the key itself may be enough
	}
	if err != nil {
		return err
	}
	for _, s := range slices.Concat(auth.signers, inAgent) {
		if _, already := s.PublicKey().(*ssh.Certificate); already || !sameKey(s.PublicKey(), cert.Key) {
			continue
		}
		signer, err := ssh.NewCertSigner(cert, s)
		if err != nil {
			return &KeyFileError{Path: path, Problem: KeyCertificate, Err: err}
		}
		auth.signers = append([]ssh.Signer{signer}, auth.signers...)
		return nil
	}
	if implied {
		return nil
	}
	return &KeyFileError{Path: path, Problem: KeyCertificate, Err: errors.New("it is for another key than the one configured")}
}

// holding are the agent's signers for a public key, certificates first.
func holding(inAgent []ssh.Signer, pub ssh.PublicKey) []ssh.Signer {
	if pub == nil {
		return nil
	}
	var certs, keys []ssh.Signer
	for _, s := range inAgent {
		if !sameKey(plain(s.PublicKey()), pub) {
			continue
		}
		if _, ok := s.PublicKey().(*ssh.Certificate); ok {
			certs = append(certs, s)
		} else {
			keys = append(keys, s)
		}
	}
	return append(certs, keys...)
}

// plain is the key that a certificate certifies, or the key itself.
func plain(k ssh.PublicKey) ssh.PublicKey {
	if cert, ok := k.(*ssh.Certificate); ok {
		return cert.Key
	}
	return k
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

func distinct(in []ssh.Signer) []ssh.Signer {
	var out []ssh.Signer
	for _, s := range in {
		if !slices.ContainsFunc(out, func(o ssh.Signer) bool { return sameKey(o.PublicKey(), s.PublicKey()) }) {
			out = append(out, s)
		}
	}
	return out
}
