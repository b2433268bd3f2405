package host

import (
	"fmt"
	"strings"
)

// PassphraseEnv is the environment variable with the passphrase of encrypted private keys.
const PassphraseEnv = "KUBEONE_SSH_PASSPHRASE"

// A HostKeyChangedError is a host that shows a key other than the known ones. It stops everything, in every policy: the
// machine was reinstalled, or someone is in the middle. Pinned and revoked keys give it too.
type HostKeyChangedError struct {
	Host     string     // "address:port" as known_hosts knows it
	Known    []KnownKey // of a revoked key: where it is revoked
	Offered  string     // fingerprint of the key shown, "SHA256:..."
	Revoked  bool       // the offered key is revoked
	AcceptAs string     // what AcceptFlag calls the machine; "" where it does not help
}

func (e *HostKeyChangedError) Error() string {
	if e.Revoked {
		return fmt.Sprintf("the host key %s of %s is revoked (%s)", e.Offered, e.Host, e.knownWhere())
	}
	return fmt.Sprintf("the host key of %s has changed: known %s, offered %s", e.Host, KnownKeys(e.Known), e.Offered)
}

func (e *HostKeyChangedError) knownWhere() string {
	places := make([]string, 0, len(e.Known))
	for _, k := range e.Known {
		places = append(places, k.Where)
	}
	return strings.Join(places, ", ")
}

// Is makes errors.Is(err, ErrHostKeyChanged) true.
func (e *HostKeyChangedError) Is(target error) bool { return target == ErrHostKeyChanged }

// Hint is what to do about it.
func (e *HostKeyChangedError) Hint() string {
	if e.Revoked {
		return "do not connect; ask whoever revoked it"
	}
	advice := "correct the old key (" + e.knownWhere() + ")"
	if e.AcceptAs != "" {
		advice = "accept it with " + AcceptFlag + " " + e.AcceptAs + "=" + e.Offered
	}
	return "compare the offered fingerprint with the one on the machine's console; if the machine was set up anew, " +
		advice + "; otherwise the connection may be intercepted"
}

// An UnknownHostKeyError is a host never met before, under PolicyStrict.
type UnknownHostKeyError struct {
	Host        string // "address:port"
	Fingerprint string // "SHA256:..."
	Type        string // "ssh-ed25519"
}

func (e *UnknownHostKeyError) Error() string {
	return fmt.Sprintf("the %s host key %s of %s is not known", e.Type, e.Fingerprint, e.Host)
}

// Is makes errors.Is(err, ErrUnknownHostKey) true.
func (e *UnknownHostKeyError) Is(target error) bool { return target == ErrUnknownHostKey }

// A NoSudoError is a user who may not become root without typing a password.
type NoSudoError struct {
	Host, User string
	Detail     string // what sudo said
}

func (e *NoSudoError) Error() string {
	return fmt.Sprintf("user %s may not use sudo without a password (%s)", e.User, e.Detail)
}

// Is makes errors.Is(err, ErrNoSudo) true.
func (e *NoSudoError) Is(target error) bool { return target == ErrNoSudo }

// Hint is what to do about it.
func (e *NoSudoError) Hint() string {
	return fmt.Sprintf("add the line %q to a file in /etc/sudoers.d on the host, or connect as root",
		e.User+" ALL=(ALL) NOPASSWD: ALL")
}

// A KeyProblem says why a private key or certificate cannot be used.
type KeyProblem int

// What can be wrong with a key file.
const (
	KeyMissing         KeyProblem = iota // no such file
	KeyUnreadable                        // permission denied, a directory
	KeyMalformed                         // not a key that SSH knows
	KeyEncrypted                         // a passphrase is needed and there is none
	KeyWrongPassphrase                   // the passphrase given does not open it
	KeyNotInAgent                        // only its public half is there, and no agent has it
	KeyCertificate                       // the certificate is expired, or for another key, or not a user certificate
)

// FromManifest is where a target's own key file is named.
const FromManifest = "sshPrivateKeyFile in the manifest"

// A KeyFileError is a private key or certificate that cannot be used. It is found before anything is dialled.
type KeyFileError struct {
	Path    string
	From    string // where the file is named: FromManifest, or a line of the SSH configuration; "": nobody named it
	Problem KeyProblem
	Err     error // the cause, may be nil
}

func (e *KeyFileError) Error() string {
	what := [...]string{"does not exist", "cannot be read", "is not an SSH private key or certificate",
		"is encrypted and no passphrase is available", "cannot be opened with the passphrase given",
		"has no private key, and neither has the SSH agent",
		"cannot be used"}[e.Problem]
	if e.Err != nil && e.Problem != KeyMissing && e.Problem != KeyEncrypted && e.Problem != KeyWrongPassphrase {
		return fmt.Sprintf("key file %s %s: %v", e.Path, what, e.Err)
	}
	return fmt.Sprintf("key file %s %s", e.Path, what)
}

func (e *KeyFileError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrKeyFile) true.
func (e *KeyFileError) Is(target error) bool { return target == ErrKeyFile }

// Hint is what to do about it.
func (e *KeyFileError) Hint() string {
	switch e.Problem {
	case KeyMissing, KeyUnreadable, KeyMalformed:
		return e.checkHint()
	case KeyNotInAgent:
		return "add the key to the SSH agent (ssh-add), or " + e.checkHint()
	case KeyEncrypted:
		return "add it to the agent (ssh-add " + e.Path + ") or set " + PassphraseEnv
	case KeyWrongPassphrase:
		return "check " + PassphraseEnv + " or add the key to the agent (ssh-add " + e.Path + ")"
	default:
		return "ask for a new certificate, or " + e.checkHint()
	}
}

func (e *KeyFileError) checkHint() string {
	if e.From == "" {
		return "check the file, or set " + FromManifest
	}
	return "check " + e.From
}
