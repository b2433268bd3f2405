package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"filippo.io/age"

	"kubeone/internal/etcd/snapshot"
)

// Content is everything in a backup. Printing shows none of its secrets.
type Content struct {
	Cluster, CreatedBy             string
	KubernetesVersion, EtcdVersion string
	Created                        time.Time
	Epoch                          int
	Hardening                      string
	Keys                           Keys
	Manifest                       []byte
	Snapshot                       io.ReaderAt // verified
	Info                           snapshot.Info
}

// Keys are the secret files of a control-plane host.
type Keys struct {
	PKI            map[string][]byte // by name: all of PKINames
	Encryption     []byte            // configuration of encryption at rest; nil: none
	EncryptionPath string
}

// Format hides the content from every verb.
func (Keys) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "backup.Keys(redacted)") }

// MarshalText hides the content from JSON, YAML and structured logs.
func (Keys) MarshalText() ([]byte, error) { return []byte("backup.Keys(redacted)"), nil }

// Write writes a backup, encrypted to all recipients. After an error, the caller must discard what was written.
func Write(w io.Writer, c Content, recipients []age.Recipient) (Metadata, error) {
	if len(recipients) == 0 {
		return Metadata{}, ErrNoRecipient
	}
	parts, err := c.allParts()
	if err != nil {
		return Metadata{}, err
	}
	m, err := c.newMetadata(parts)
	if err != nil {
		return Metadata{}, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Metadata{}, err
	}
	signature, err := signMetadata(text, c.Keys.PKI["ca.key"])
	if err != nil {
		return Metadata{}, err
	}
	encrypted, err := age.Encrypt(w, recipients...)
	if err != nil {
		return Metadata{}, fmt.Errorf("encrypt the backup: %w", err)
	}
	parts = slices.Insert(parts, 0, part{MetadataName, bytes.NewReader(text), int64(len(text))},
		part{SignatureName, bytes.NewReader(signature), int64(len(signature))})
	if err := writeTar(encrypted, parts, m.Created); err != nil {
		return Metadata{}, err
	}
	return m, encrypted.Close()
}

// part is a file to write.
type part struct {
	name    string
	content io.ReaderAt
	size    int64
}

// allParts returns all files except the metadata, in order.
func (c Content) allParts() ([]part, error) {
	var out []part
	add := func(name string, content []byte) {
		out = append(out, part{name, bytes.NewReader(content), int64(len(content))})
	}
	for _, name := range PKINames() {
		content := c.Keys.PKI[name]
		if len(content) == 0 {
			return nil, fmt.Errorf("%w: %s", ErrIncomplete, PKIDir+name)
		}
		add(PKIDir+name, content)
	}
	if text := c.Keys.PKI[SuccessionName]; len(text) > 0 {
		add(PKIDir+SuccessionName, text)
	}
	if len(c.Keys.Encryption) > 0 {
		add(EncryptionName, c.Keys.Encryption)
	}
	if len(c.Manifest) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrIncomplete, ManifestName)
	}
	add(ManifestName, c.Manifest)
	return append(out, part{SnapshotName, c.Snapshot, c.Info.Size}), nil
}

func (c Content) newMetadata(parts []part) (Metadata, error) {
	hash, err := CAHash(c.Keys.PKI["ca.crt"])
	if err != nil {
		return Metadata{}, err
	}
	m := Metadata{
		Format: Format, Cluster: c.Cluster, ClusterID: c.Info.ClusterID, Created: c.Created.UTC().Truncate(time.Second),
		CreatedBy:         c.CreatedBy,
		KubernetesVersion: c.KubernetesVersion, EtcdVersion: c.EtcdVersion, CAHash: hash, Epoch: c.Epoch,
		Hardening:      c.Hardening,
		EncryptionPath: c.Keys.EncryptionPath, Snapshot: c.Info,
	}
	for _, p := range parts {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(p.content, 0, p.size)); err != nil {
			return Metadata{}, err
		}
		m.Parts = append(m.Parts, Part{Name: p.name, Size: p.size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	return m, nil
}

func writeTar(w io.Writer, parts []part, at time.Time) error {
	t := tar.NewWriter(w)
	for _, p := range parts {
		if err := t.WriteHeader(&tar.Header{
			Name: p.name, Mode: 0o600, Size: p.size, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		if _, err := io.Copy(t, io.NewSectionReader(p.content, 0, p.size)); err != nil {
			return err
		}
	}
	return t.Close()
}
