package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"kubeone/internal/probe"
	"kubeone/internal/text/pattern"
)

// knownCA is the file in which this machine keeps by which CA it knows a cluster. It may be used concurrently.
type knownCA struct {
	path string

	mu    sync.Mutex
	ca    string
	saved string // what the file has
}

// pinnedForm is what the file has, and what kubeadm takes as --discovery-token-ca-cert-hash.
var pinnedForm = pattern.Lazy(`^sha256:[0-9a-f]{64}$`)

// openKnownCA reads the file, if there is one. The CA of a certificate that the operator gives goes before it, and is
// what is known once the cluster has answered with it.
func openKnownCA(path, certificate string) (*knownCA, error) {
	k := &knownCA{path: path}
	if certificate != "" {
		pem, err := os.ReadFile(certificate) // #nosec G304 -- the operator names it
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		if k.ca = probe.CAHash(pem); k.ca == "" {
			return nil, fmt.Errorf("--ca-file %s: no certificate is in it", certificate)
		}
		return k, nil
	}
	text, err := os.ReadFile(path) // #nosec G304 -- our own
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	k.saved = strings.TrimSpace(string(text))
	if k.ca = k.saved; !pinnedForm().MatchString(k.ca) {
		return nil, fmt.Errorf("%s does not hold the hash of a CA (sha256:…, 64 hexadecimal digits): correct it, or "+
			"remove it to take the cluster at its word once more", path)
	}
	return k, nil
}

// CA is the hash of the cluster's CA; "" while it is not known.
func (k *knownCA) CA() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ca
}

// Know writes it to the file, unless it is there; "" removes the file.
func (k *knownCA) Know(ca string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ca == "" {
		if err := os.Remove(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		k.ca, k.saved = "", ""
		return nil
	}
	if k.saved == ca {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	next := k.path + ".new"
	if err := os.WriteFile(next, []byte(ca+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, k.path); err != nil {
		return err
	}
	k.ca, k.saved = ca, ca
	return nil
}
