package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// Options configure a Keyring.
type Options struct {
	// Passphrase asks the operator for the passphrase of a key file, at most once per file and never concurrently. Nil
	// means that there is no operator to ask.
	Passphrase   func(keyFile string) ([]byte, error)
	Getenv       func(string) string
	AgentTimeout time.Duration
	// Signers, if any, are the only keys offered to every host. Key files and the agent are then not used.
	Signers []ssh.Signer
}

// A Keyring reads each private key file once and asks for each passphrase at most once.
type Keyring struct {
	opts Options
	ask  sync.Mutex // one question at a time

	mu    sync.Mutex
	files map[Identity]*keyFile
}

// New returns a Keyring, which reads files when they are needed.
func New(o Options) *Keyring { return &Keyring{opts: o, files: map[Identity]*keyFile{}} }

// A keyFile is one private key. Its public key is often known while the private key is encrypted or only in the agent.
type keyFile struct {
	of     Identity
	locked []byte // the encrypted file, nil if it needs no passphrase
	pub    ssh.PublicKey
	public error // set if the file contains only the public key, so that the private key must be in the agent
	err    error // the file cannot be read or parsed

	once    sync.Once // guards the unlocking
	signer  ssh.Signer
	lockErr error
}

// isPublicOnly reports whether the file contains only the public key, so that the private key must be in the agent.
func (f *keyFile) isPublicOnly() bool { return f.public != nil }

// fileError returns an error about the file.
func (i Identity) fileError(problem host.KeyProblem, err error) *host.KeyFileError {
	return &host.KeyFileError{Path: i.Path, From: i.From, Problem: problem, Err: err}
}

// readKeyFile reads a key file without unlocking it.
func (k *Keyring) readKeyFile(of Identity) (*keyFile, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.files[of]
	if f == nil {
		f = readKeyFile(of)
		k.files[of] = f
	}
	return f, f.err
}

// readKeyFile reads a private key. As in ssh, if there is only a public key, in the file or in one with .pub added to
// its name, it reads that, because the private key may be in the agent.
func readKeyFile(of Identity) *keyFile {
	f := &keyFile{of: of}
	path := of.Path
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.err = of.fileError(host.KeyMissing, err)
		if f.pub = readPublicKey(path + ".pub"); f.pub != nil {
			f.public, f.err = of.fileError(host.KeyNotInAgent, fmt.Errorf("only %s.pub exists", path)), nil
		}
		return f
	case err != nil:
		f.err = of.fileError(host.KeyUnreadable, err)
		return f
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		f.signer, f.pub = signer, signer.PublicKey()
	case errors.As(err, &locked):
		f.locked, f.pub = text, locked.PublicKey
		if f.pub == nil { // encrypted in the old format, but ssh-keygen also wrote a .pub file
			f.pub = readPublicKey(path + ".pub")
		}
	default:
		f.err = of.fileError(host.KeyMalformed, err)
		if f.pub = readPublicKey(path); f.pub != nil {
			f.public, f.err = of.fileError(host.KeyNotInAgent, errors.New("it is a public key")), nil
		}
	}
	return f
}

func readPublicKey(path string) ssh.PublicKey {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return pubkey.Plain(pub)
}

// unlockKey returns the private key, decrypted if necessary with the passphrase in the environment or from the
// operator.
func (k *Keyring) unlockKey(f *keyFile) (ssh.Signer, error) {
	f.once.Do(func() {
		if f.signer == nil {
			f.signer, f.lockErr = k.openKey(f)
		}
	})
	return f.signer, f.lockErr
}

func (k *Keyring) openKey(f *keyFile) (ssh.Signer, error) {
	if f.isPublicOnly() {
		return nil, f.public
	}
	problem := host.KeyEncrypted
	if phrase := k.opts.Getenv(host.PassphraseEnv); phrase != "" {
		signer, err := ssh.ParsePrivateKeyWithPassphrase(f.locked, []byte(phrase))
		if err == nil {
			return signer, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return nil, f.of.fileError(host.KeyMalformed, err)
		}
		problem = host.KeyWrongPassphrase
	}
	if k.opts.Passphrase == nil {
		return nil, f.of.fileError(problem, nil)
	}
	k.ask.Lock()
	defer k.ask.Unlock()
	phrase, err := k.opts.Passphrase(f.of.Path)
	if err != nil {
		return nil, f.of.fileError(host.KeyEncrypted, err)
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(f.locked, phrase)
	if err != nil {
		return nil, f.of.fileError(host.KeyWrongPassphrase, err)
	}
	return signer, nil
}

// readCertificate reads a user certificate. It returns an error if the certificate is not valid at the time now.
func readCertificate(file Identity, now time.Time) (*ssh.Certificate, error) {
	text, err := os.ReadFile(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, file.fileError(host.KeyMissing, err)
	case err != nil:
		return nil, file.fileError(host.KeyUnreadable, err)
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		if block, _ := pem.Decode(bytes.TrimSpace(text)); block != nil {
			err = errors.New("it is a private key")
		}
		return nil, file.fileError(host.KeyMalformed, err)
	}
	cert, ok := pub.(*ssh.Certificate)
	unix := uint64(now.Unix()) //nolint:gosec // the clock is past 1970
	switch {
	case !ok:
		err = errors.New("it is a public key, not a certificate")
	case cert.CertType != ssh.UserCert:
		err = errors.New("it is a host certificate")
	case unix < cert.ValidAfter:
		err = fmt.Errorf("it is valid only from %s", certTime(cert.ValidAfter))
	case cert.ValidBefore != ssh.CertTimeInfinity && unix >= cert.ValidBefore:
		err = fmt.Errorf("it expired on %s", certTime(cert.ValidBefore))
	}
	if err != nil {
		return nil, file.fileError(host.KeyCertificate, err)
	}
	return cert, nil
}

func certTime(t uint64) string {
	return time.Unix(int64(min(t, 1<<40)), 0).UTC().Format(time.RFC3339)
}
