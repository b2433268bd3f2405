package hostkey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// Contacts are the first contacts that nobody has approved yet.
func (h *Verifier) Contacts() []host.FirstContact {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []host.FirstContact
	for _, addr := range h.order {
		if m := h.met[addr]; !m.approved {
			out = append(out, m.contact)
		}
	}
	return out
}

// Pending is the first contact at an address, if nobody has approved it yet.
func (h *Verifier) Pending(addr string) (host.FirstContact, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.met[addr]
	if m == nil || m.approved {
		return host.FirstContact{}, false
	}
	return m.contact, true
}

// Approve records first contacts, all or none.
func (h *Verifier) Approve(contacts []host.FirstContact) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fresh []host.FirstContact
	for _, c := range contacts {
		m := h.met[c.Address]
		if m == nil || !pubkey.Equal(m.contact.Key, c.Key) {
			return fmt.Errorf("%s: the key %s to be approved is not the one that was met", c.Host, c.Fingerprint)
		}
		if !m.approved {
			fresh = append(fresh, c)
		}
	}
	if err := h.record(fresh); err != nil {
		return err
	}
	for _, c := range fresh {
		h.met[c.Address].approved = true
	}
	return nil
}

// record appends keys to the record file in one write: another process that appends loses nothing, and a crash leaves
// at most a line without its end, which readers pass over.
func (h *Verifier) record(contacts []host.FirstContact) error {
	path := h.opts.RecordFile
	if path == "" || len(contacts) == 0 {
		return nil
	}
	var lines bytes.Buffer
	for _, c := range contacts {
		lines.WriteString(knownhosts.Line([]string{c.Address}, c.Key) + "\n")
	}
	if err := appendPrivately(path, lines.Bytes()); err != nil {
		return fmt.Errorf("record host keys: %w", err)
	}
	return nil
}

func appendPrivately(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		text = append([]byte{'\n'}, text...)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	_, err = f.Write(text)
	return err
}
