package sshtest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// NewKey creates an Ed25519 key.
func NewKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(private)
}

// A Key is a private key in a file.
type Key struct {
	Path    string
	Private crypto.PrivateKey
	Signer  ssh.Signer
}

// Public returns the key's public half.
func (k Key) Public() ssh.PublicKey { return k.Signer.PublicKey() }

// WriteKey creates an Ed25519 key in a file of the test; a passphrase encrypts it.
func WriteKey(t testing.TB, passphrase string) Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	mustSucceed(t, err)
	signer, err := ssh.NewSignerFromSigner(private)
	mustSucceed(t, err)
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	mustSucceed(t, err)
	path := filepath.Join(t.TempDir(), "id_ed25519")
	mustSucceed(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	return Key{Path: path, Private: private, Signer: signer}
}

// Agent serves an SSH agent with these keys and returns its socket.
func Agent(t testing.TB, keys ...Key) (socket string) {
	t.Helper()
	keyring := agent.NewKeyring()
	for _, k := range keys {
		mustSucceed(t, keyring.Add(agent.AddedKey{PrivateKey: k.Private}))
	}
	dir, err := os.MkdirTemp("", "agent") // socket paths must be short, so not t.TempDir
	mustSucceed(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	mustSucceed(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(keyring, c)
				_ = c.Close()
			}()
		}
	}()
	return socket
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
