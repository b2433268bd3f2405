package host

import (
	"fmt"
	"strings"
)

// PassphraseEnv is the environment variable with the passphrase of encrypted private keys.
const PassphraseEnv = "KUBEONE_SSH_PASSPHRASE"

// A HostKeyChangedError means that a host has a key other than the known or pinned ones, or a revoked key. It is fatal
// under every policy, because the machine was reinstalled or the connection is intercepted.
type HostKeyChangedError struct {
	Host     string     // "address:port" in known_hosts
	Known    []KnownKey // for a revoked key: where it is revoked
	Offered  string     // fingerprint of the key shown, "SHA256:..."
	Revoked  bool       // the offered key is revoked
	AcceptAs string     // the name of the machine for AcceptFlag; "" if the flag does not help
	Pinned   string     // the offered key in base64 if the manifest pins the known ones, else ""
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

// Hint says what to do.
func (e *HostKeyChangedError) Hint() string {
	if e.Revoked {
		return "do not connect; ask the administrator who revoked it"
	}
	advice := "correct the old key (" + e.knownWhere() + ")"
	switch {
	case e.Pinned != "":
		advice = "set the pinned key (sshHostPublicKey or bastionHostPublicKey) in the manifest to " + e.Pinned
	case e.AcceptAs != "":
		advice = "accept it with " + AcceptFlag + " " + e.AcceptAs + "=" + e.Offered
	}
	return "compare the offered fingerprint with the one on the machine's console; if the machine was reinstalled, " +
		advice + "; otherwise the connection may be intercepted"
}

// An UnknownHostKeyError is an unknown host, under PolicyStrict.
type UnknownHostKeyError struct {
	Host        string // "address:port"
	Fingerprint string // "SHA256:..."
	Type        string // "ssh-ed25519"
}

func (e *UnknownHostKeyError) Error() string {
	return fmt.Sprintf("the %s host key %s of %s is unknown", e.Type, e.Fingerprint, e.Host)
}

// Is makes errors.Is(err, ErrUnknownHostKey) true.
func (e *UnknownHostKeyError) Is(target error) bool { return target == ErrUnknownHostKey }

// A NoSudoError is a user who cannot become root without a password.
type NoSudoError struct {
	Host, User string
	Detail     string // sudo's message
}

func (e *NoSudoError) Error() string {
	return fmt.Sprintf("user %s may not use sudo without a password (%s)", e.User, e.Detail)
}

// Is makes errors.Is(err, ErrNoSudo) true.
func (e *NoSudoError) Is(target error) bool { return target == ErrNoSudo }

// Hint says what to do.
func (e *NoSudoError) Hint() string {
	return fmt.Sprintf("add the line %q to a file in /etc/sudoers.d on the host, or connect as root",
		e.User+" ALL=(ALL) NOPASSWD: ALL")
}

// A KeyProblem says why a private key or certificate cannot be used.
type KeyProblem int

// The problems of a key file.
const (
	KeyMissing         KeyProblem = iota // no such file
	KeyUnreadable                        // permission denied, a directory
	KeyMalformed                         // not a valid SSH key
	KeyEncrypted                         // a passphrase is needed and there is none
	KeyWrongPassphrase                   // the passphrase given does not open it
	KeyNotInAgent                        // only its public half exists, and no agent has the key
	KeyCertificate                       // the certificate is expired, or for another key, or not a user certificate
)

// FromManifest is the field with a target's own key file.
const FromManifest = "sshPrivateKeyFile in the manifest"

// A KeyFileError is an unusable private key or certificate. It is found before anything is dialled.
type KeyFileError struct {
	Path    string
	From    string // where the file is configured: FromManifest, or a line of the SSH configuration; "": default
	Problem KeyProblem
	Err     error // the cause, may be nil
}

func (e *KeyFileError) Error() string {
	what := [...]string{"does not exist", "cannot be read", "is not an SSH private key or certificate",
		"is encrypted and no passphrase is available", "cannot be opened with the passphrase given",
		"does not contain a private key, and the key is not in the SSH agent",
		"cannot be used"}[e.Problem]
	if e.Err != nil && e.Problem != KeyMissing && e.Problem != KeyEncrypted && e.Problem != KeyWrongPassphrase {
		return fmt.Sprintf("key file %s %s: %v", e.Path, what, e.Err)
	}
	return fmt.Sprintf("key file %s %s", e.Path, what)
}

func (e *KeyFileError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrKeyFile) true.
func (e *KeyFileError) Is(target error) bool { return target == ErrKeyFile }

// Hint says what to do.
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
