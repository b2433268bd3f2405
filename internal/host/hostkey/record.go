package hostkey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/host"
	"kubeone/internal/host/pubkey"
)

// Contacts returns the first contacts that are not approved yet.
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

// Pending returns the first contact at an address, if it is not approved yet.
func (h *Verifier) Pending(addr string) (host.FirstContact, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.met[addr]
	if m == nil || m.approved {
		return host.FirstContact{}, false
	}
	return m.contact, true
}

// Approve records the keys of all given first contacts, or of none if it returns an error.
func (h *Verifier) Approve(contacts []host.FirstContact) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fresh []host.FirstContact
	for _, c := range contacts {
		m := h.met[c.Address]
		if m == nil || !pubkey.Equal(m.contact.Key, c.Key) {
			return fmt.Errorf("%s: cannot approve the key %s: the host showed another key", c.Host, c.Fingerprint)
		}
		if !m.approved {
			fresh = append(fresh, c)
		}
	}
	if err := h.recordKeys(fresh); err != nil {
		return err
	}
	for _, c := range fresh {
		h.met[c.Address].approved = true
	}
	return nil
}

// replacing starts the comment of a recorded key that was accepted in place of others. Their fingerprints follow,
// separated by ",". These keys are not valid at that address any more, in any file, until they are accepted again. This
// way lines are only appended to the record file, and other files do not change.
const replacing = "replaces "

// replacedBy returns the fingerprints in such a comment.
func replacedBy(comment string) []string {
	prints, ok := strings.CutPrefix(comment, replacing)
	if !ok {
		return nil
	}
	return strings.Split(prints, ",")
}

// recordLine returns the line for a contact in the record file.
func recordLine(c host.FirstContact) string {
	line := knownhosts.Line([]string{c.Address}, c.Key)
	if len(c.Replaces) == 0 {
		return line
	}
	var prints []string
	for _, k := range c.Replaces {
		prints = append(prints, k.Fingerprint)
	}
	return line + " " + replacing + strings.Join(prints, ",")
}

// recordKeys appends keys to the record file in one write. Other processes can append at the same time. A crash leaves
// at most an incomplete line, which readers skip.
func (h *Verifier) recordKeys(contacts []host.FirstContact) error {
	path := h.opts.RecordFile
	if path == "" || len(contacts) == 0 {
		return nil
	}
	var lines bytes.Buffer
	for _, c := range contacts {
		lines.WriteString(recordLine(c) + "\n")
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
