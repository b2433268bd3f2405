package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"kubeone/internal/etcd/snapshot"
)

// Archive is an open backup. Its parts are decrypted and checked while they are read, and are never written to disk.
// Its methods are safe for concurrent use. The caller must close it.
type Archive struct {
	Metadata Metadata

	path  string
	file  *os.File
	parts map[string]*section
}

// section is the position of a part in the decrypted backup.
type section struct {
	from   io.ReaderAt
	offset int64
	size   int64
}

// Open opens a backup with the private keys of one of its recipients. It checks that the file is complete and reads its
// metadata. Call Verify to check the rest. Errors name the file and wrap one of the errors of this package.
func Open(path string, identities ...age.Identity) (*Archive, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator names it
	if err != nil {
		return nil, err
	}
	a := &Archive{path: path, file: f, parts: map[string]*section{}}
	if err := a.open(identities); err != nil {
		return nil, errors.Join(fmt.Errorf("backup %s cannot be used: %w", path, err), f.Close())
	}
	return a, nil
}

// Close closes the backup. Its parts can no longer be read.
func (a *Archive) Close() error { return a.file.Close() }

func (a *Archive) open(identities []age.Identity) error {
	stat, err := a.file.Stat()
	if err != nil {
		return err
	}
	content, size, err := age.DecryptReaderAt(a.file, stat.Size(), identities...)
	if err != nil {
		return a.explainDecryptError(err, stat.Size())
	}
	if err := a.indexParts(io.NewSectionReader(content, 0, size), content); err != nil {
		return err
	}
	return a.readMetadata()
}

const ageMagic = "age-encryption.org/"

// explainDecryptError returns an error that says why age cannot decrypt a file.
func (a *Archive) explainDecryptError(err error, size int64) error {
	var mismatch *age.NoIdentityMatchError
	if errors.As(err, &mismatch) {
		return ErrWrongIdentity
	}
	start := make([]byte, len(ageMagic))
	n, _ := a.file.ReadAt(start, 0)
	switch {
	case size == 0:
		return fmt.Errorf("%w: it is empty", ErrNotBackup)
	case !strings.HasPrefix(ageMagic, string(start[:n])):
		return fmt.Errorf("%w: it is not encrypted with age", ErrNotBackup)
	case n < len(ageMagic) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return ErrTruncated
	}
	return fmt.Errorf("%w, or its end is missing: %w", ErrAltered, err)
}

// indexParts finds the parts without reading them.
func (a *Archive) indexParts(plain *io.SectionReader, content io.ReaderAt) error {
	t := tar.NewReader(plain)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAltered, err)
		}
		at, err := plain.Seek(0, io.SeekCurrent) // tar does not read ahead
		if err != nil {
			return err
		}
		a.parts[header.Name] = &section{content, at, header.Size}
	}
}

func (a *Archive) readMetadata() error {
	text, err := a.Read(MetadataName)
	if err != nil {
		return fmt.Errorf("%w: it has no %s", ErrNotBackup, MetadataName)
	}
	if a.Metadata, err = parseMetadata(text); err != nil {
		return err
	}
	for _, p := range a.Metadata.Parts {
		if s, ok := a.parts[p.Name]; !ok || s.size != p.Size {
			return fmt.Errorf("%w: %s", ErrIncomplete, p.Name)
		}
	}
	return nil
}

// latestEpoch is the maximum epoch of a backup. In that epoch, etcd revisions still fit into an int64.
const latestEpoch = 1_000_000

// parseMetadata parses and checks the metadata of a backup, which may come from anyone.
func parseMetadata(text []byte) (Metadata, error) {
	var m Metadata
	if err := json.Unmarshal(text, &m); err != nil {
		return Metadata{}, fmt.Errorf("%w: %s: %w", ErrNotBackup, MetadataName, err)
	}
	switch {
	case m.Format > Format:
		return Metadata{}, fmt.Errorf("%w: format %d, this one reads %d", ErrNewer, m.Format, Format)
	case m.Epoch < 0 || m.Epoch > latestEpoch || m.Snapshot.Revision < 0:
		return Metadata{}, fmt.Errorf("%w: epoch %d and revision %d are impossible", ErrAltered, m.Epoch,
			m.Snapshot.Revision)
	}
	return m, nil
}

// isAllowedPath reports whether a recovery can write the configuration of encryption at rest to that path. It must be
// in /etc/kubernetes, but not where the kubelet or the control plane would read it as something else.
func isAllowedPath(file string) bool {
	below, ok := strings.CutPrefix(file, "/etc/kubernetes/")
	return ok && path.Clean(file) == file && path.Ext(file) != ".conf" && !strings.ContainsFunc(file, isUnusual) &&
		!slices.Contains([]string{"manifests", "pki"}, strings.SplitN(below, "/", 2)[0])
}

func isUnusual(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-", r))
}

// Part returns a part's content, and whether it exists.
func (a *Archive) Part(name string) (*io.SectionReader, bool) {
	s, ok := a.parts[name]
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(s.from, s.offset, s.size), true
}

// maxPartBytes limits the size of parts that are read into memory, which are all but the snapshot.
const maxPartBytes = 16 << 20

// Read returns the content of a part and checks its digest. If there is no such part, the error wraps ErrIncomplete.
func (a *Archive) Read(name string) ([]byte, error) {
	r, ok := a.Part(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrIncomplete, name)
	}
	if r.Size() > maxPartBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrAltered, name, r.Size())
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAltered, err)
	}
	for _, p := range a.Metadata.Parts {
		if sum := sha256.Sum256(text); p.Name == name && hex.EncodeToString(sum[:]) != p.SHA256 {
			return nil, fmt.Errorf("%w: %s", ErrAltered, name)
		}
	}
	return text, nil
}

// Snapshot returns the snapshot of etcd, which is secret. Metadata.Snapshot describes it.
func (a *Archive) Snapshot() (*io.SectionReader, error) {
	r, ok := a.Part(SnapshotName)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrIncomplete, SnapshotName)
	}
	return r, nil
}

// Manifest returns the manifest last applied to the cluster, without secrets.
func (a *Archive) Manifest() ([]byte, error) { return a.Read(ManifestName) }

// PKI returns a tar of PKINames, and of SuccessionName if it exists, for /etc/kubernetes/pki of a control-plane host.
// It is secret.
func (a *Archive) PKI() ([]byte, error) {
	names, parts := PKINames(), []part(nil)
	if _, ok := a.parts[PKIDir+SuccessionName]; ok {
		names = append(names, SuccessionName)
	}
	for _, name := range names {
		text, err := a.Read(PKIDir + name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{name, bytes.NewReader(text), int64(len(text))})
	}
	var out bytes.Buffer
	err := writeTar(&out, parts, a.Metadata.Created)
	return out.Bytes(), err
}

// Encryption returns the configuration of encryption at rest, which is secret, and its path for the API server. It
// returns nil if there is none, and an error if a recovery must not write to that path.
func (a *Archive) Encryption() (content []byte, file string, err error) {
	if _, ok := a.parts[EncryptionName]; !ok {
		return nil, "", nil
	}
	if file = a.Metadata.EncryptionPath; !isAllowedPath(file) {
		return nil, "", fmt.Errorf("backup %s contains the configuration of encryption at rest for %q, but a recovery "+
			"writes only to /etc/kubernetes, and not to its directories of manifests and keys", a.path, file)
	}
	content, err = a.Read(EncryptionName)
	return content, file, err
}

// Verify reads the whole backup. It checks the digest of each part, the hash of the CA, and the snapshot, whose
// revision and number of keys must match the metadata. A time in the file name must be the time of the backup. Verify
// needs enough memory to hold the snapshot.
func (a *Archive) Verify(ctx context.Context) error {
	if err := a.verifyParts(ctx); err != nil {
		return fmt.Errorf("backup %s cannot be used: %w", a.path, err)
	}
	return nil
}

func (a *Archive) verifyParts(ctx context.Context) error {
	if err := a.Metadata.checkTime(filepath.Base(a.path)); err != nil {
		return err
	}
	for _, p := range a.Metadata.Parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, _ := a.Part(p.Name)
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrAltered, p.Name, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
			return fmt.Errorf("%w: %s", ErrAltered, p.Name)
		}
	}
	for _, name := range append([]string{ManifestName}, withPrefix(PKIDir, PKINames())...) {
		if _, err := a.Read(name); err != nil {
			return err
		}
	}
	return a.verifySnapshot()
}

func (a *Archive) verifySnapshot() error {
	ca, err := a.Read(PKIDir + "ca.crt")
	if err != nil {
		return err
	}
	if hash, err := CAHash(ca); err != nil || hash != a.Metadata.CAHash {
		return errors.Join(fmt.Errorf("%w: the cluster CA does not match the metadata", ErrAltered), err)
	}
	r, err := a.Snapshot()
	if err != nil {
		return err
	}
	info, err := snapshot.VerifyReader(r)
	if err != nil {
		return fmt.Errorf("the snapshot in it: %w", err)
	}
	if want := a.Metadata.Snapshot; info.SHA256 != want.SHA256 || info.Revision != want.Revision ||
		info.Keys != want.Keys {
		return fmt.Errorf("%w: its snapshot has revision %d and %d keys, but the metadata says %d and %d", ErrAltered,
			info.Revision, info.Keys, want.Revision, want.Keys)
	}
	return nil
}

func withPrefix(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}
