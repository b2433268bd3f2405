// Package credentials finds the private keys for logging in to a host: key files, certificates and the SSH agent.
package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// maxKeys is the maximum number of offered keys, because sshd ends the connection after six failures (MaxAuthTries).
const maxKeys = 6

// Errors for missing credentials, for errors.Is.
var (
	ErrNoKey = errors.New("no private key to log in with")
	ErrAgent = fmt.Errorf("%w: the SSH agent cannot be used", ErrNoKey)
)

// An Identity is the file of a private key, or of the public key of a key in the agent.
type Identity struct {
	Path string
	From string // where the file is configured, for messages; "" for a default file
}

// A Source says where to find the keys for one host.
type Source struct {
	Identities []Identity // in order
	Optional   bool       // identities may be missing, because they are not configured for this host alone
	Named      bool       // identities are configured for this host
	Only       bool       // do not offer keys in the agent that are not identities
	Cert       Identity   // a certificate; if it has no path, that of the identity, if there is only one
	Agent      string     // socket; "": none; never shown in messages, because it is the value of a variable
	AgentName  string     // name of the socket in messages
	AgentFrom  string     // where it is configured
	AgentAsked bool       // the agent is configured explicitly, so it is an error if it does not answer
}

// A Set holds the keys to offer to one host, in order.
type Set struct {
	Signers []ssh.Signer
	agent   net.Conn // must stay open while the signers are used; nil without agent
}

// Close closes the connection to the agent. It may be called more than once.
func (c Set) Close() {
	if c.agent != nil {
		_ = c.agent.Close()
	}
}

// Offered describes the keys for a message.
func (c Set) Offered() []string {
	var out []string
	for _, s := range c.Signers {
		k := s.PublicKey()
		if cert, ok := k.(*ssh.Certificate); ok {
			out = append(out, fmt.Sprintf("certificate %q for %s", cert.KeyId, ssh.FingerprintSHA256(cert.Key)))
			continue
		}
		out = append(out, k.Type()+" "+ssh.FingerprintSHA256(k))
	}
	return out
}

// Collect returns the keys to offer to a host, at most maxKeys. First come the identities, through the agent if it has
// them, then the other keys in the agent. If the agent has a key that is configured for the host, only that is offered.
func (k *Keyring) Collect(from Source) (Set, error) {
	if len(k.opts.Signers) > 0 {
		return Set{Signers: k.opts.Signers}, nil
	}
	inAgent, c, err := k.agentKeys(from)
	if err != nil {
		return Set{}, err
	}
	auth := Set{agent: c}
	own, inAgentOnly, err := k.ownKeys(from, inAgent)
	if err == nil {
		auth.Signers = own
		if !inAgentOnly && !from.Only {
			auth.Signers = append(auth.Signers, inAgent...)
		}
		auth.Signers = uniqueSigners(auth.Signers)
		err = k.addCertificate(from, inAgent, &auth)
	}
	if err == nil && len(auth.Signers) == 0 {
		err = k.addSkippedKeys(from, &auth)
	}
	if err != nil {
		auth.Close()
		return Set{}, err
	}
	auth.Signers = auth.Signers[:min(len(auth.Signers), maxKeys)]
	return auth, nil
}

// agentKeys returns the keys in the agent. If there is no agent and none is configured explicitly, it returns none.
func (k *Keyring) agentKeys(from Source) ([]ssh.Signer, net.Conn, error) {
	if from.Agent == "" {
		if from.AgentAsked {
			return nil, nil, fmt.Errorf("%w (%s): %s is empty", ErrAgent, from.AgentFrom, from.AgentName)
		}
		return nil, nil, nil
	}
	c, err := k.dialAgent(from.Agent)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(k.opts.AgentTimeout))
		var keys []ssh.Signer
		if keys, err = agent.NewClient(c).Signers(); err == nil {
			_ = c.SetDeadline(time.Time{}) // signing may wait for the operator; the login has its own deadline
			return keys, c, nil
		}
		_ = c.Close()
	}
	if from.AgentAsked {
		return nil, nil, fmt.Errorf("%w (%s): %s: %w", ErrAgent, from.AgentFrom, from.AgentName, err)
	}
	return nil, nil, nil
}

// dialAgent connects to a socket. The error does not contain the path of the socket.
func (k *Keyring) dialAgent(socket string) (net.Conn, error) {
	if !filepath.IsAbs(socket) {
		return nil, errors.New("it is not an absolute path")
	}
	//nolint:noctx // bounded, and nothing to cancel yet
	c, err := net.DialTimeout("unix", socket, k.opts.AgentTimeout)
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return c, err
}

// canSkip reports whether an identity that cannot be read is skipped instead of being an error.
func (s Source) canSkip(err error) bool {
	return s.Optional && (!s.Named || errors.Is(err, fs.ErrNotExist))
}

// usesOnlyIfNeeded reports whether an identity that is not in the agent is used only if there is no other key.
func (s Source) usesOnlyIfNeeded(f *keyFile) bool {
	return !s.Named && f.locked != nil || s.Optional && f.isPublicOnly()
}

// ownKeys returns the keys of the identities. inAgentOnly is true if the agent has one that is configured for the host,
// so that no other key is needed. Default files that are encrypted or unusable are skipped.
func (k *Keyring) ownKeys(from Source, inAgent []ssh.Signer) (own []ssh.Signer, inAgentOnly bool, err error) {
	var held []ssh.Signer
	for _, identity := range from.Identities {
		f, err := k.readKeyFile(identity)
		if err != nil && from.canSkip(err) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if h := agentSigners(inAgent, f.pub); len(h) > 0 {
			held = append(held, h...)
			continue
		}
		if from.usesOnlyIfNeeded(f) {
			continue
		}
		s, err := k.unlockKey(f)
		if err != nil {
			if len(held) > 0 {
				continue
			}
			return nil, false, err
		}
		own = append(own, s)
	}
	if from.Named && len(held) > 0 {
		return held, true, nil
	}
	return append(held, own...), false, nil
}

// addSkippedKeys adds the keys that ownKeys skipped, because there are no others. It may ask for passphrases.
func (k *Keyring) addSkippedKeys(from Source, auth *Set) error {
	var missing error
	for _, identity := range from.Identities {
		f, err := k.readKeyFile(identity)
		if err == nil && f.isPublicOnly() {
			_, missing = k.unlockKey(f)
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		s, err := k.unlockKey(f)
		if err != nil {
			return err
		}
		auth.Signers = append(auth.Signers, s)
	}
	switch {
	case len(auth.Signers) > 0:
		return nil
	case from.Named && missing != nil:
		return missing
	}
	return ErrNoKey
}

// addCertificate adds the user certificate for the host before the keys.
func (k *Keyring) addCertificate(from Source, inAgent []ssh.Signer, auth *Set) error {
	file, implied := from.Cert, false
	if file.Path == "" && len(from.Identities) == 1 {
		file.Path, implied = from.Identities[0].Path+"-cert.pub", true
		if _, err := os.Stat(file.Path); err != nil {
			return nil //nolint:nilerr // most keys have no certificate
		}
	}
	if file.Path == "" {
		return nil
	}
	cert, err := readCertificate(file, time.Now())
	if implied && err != nil {
		return nil //nolint:nilerr // as in ssh: the key itself may be enough
	}
	if err != nil {
		return err
	}
	for _, s := range slices.Concat(auth.Signers, inAgent) {
		if _, already := s.PublicKey().(*ssh.Certificate); already || !pubkey.Equal(s.PublicKey(), cert.Key) {
			continue
		}
		signer, err := ssh.NewCertSigner(cert, s)
		if err != nil {
			return file.fileError(host.KeyCertificate, err)
		}
		auth.Signers = append([]ssh.Signer{signer}, auth.Signers...)
		return nil
	}
	if implied {
		return nil
	}
	return file.fileError(host.KeyCertificate, errors.New("it is not for the configured key"))
}

// agentSigners returns the signers in the agent for a public key, certificates first.
func agentSigners(inAgent []ssh.Signer, pub ssh.PublicKey) []ssh.Signer {
	if pub == nil {
		return nil
	}
	var certs, keys []ssh.Signer
	for _, s := range inAgent {
		if !pubkey.Equal(pubkey.Plain(s.PublicKey()), pub) {
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

func uniqueSigners(in []ssh.Signer) []ssh.Signer {
	var out []ssh.Signer
	for _, s := range in {
		if !slices.ContainsFunc(out, func(o ssh.Signer) bool { return pubkey.Equal(o.PublicKey(), s.PublicKey()) }) {
			out = append(out, s)
		}
	}
	return out
}
