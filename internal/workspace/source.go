package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// Source is a verified copy of the data of a cluster, from which to recover it. The caller must close it.
type Source struct {
	origin  plan.Copy
	content apply.Copy
	close   []func() error
}

// Request returns the request to recover the cluster from the copy.
func (s *Source) Request() engine.Recover { return engine.Recover{About: s.origin, Content: s.content} }

// Close closes the copy and deletes a downloaded backup.
func (s *Source) Close() {
	for i := len(s.close) - 1; i >= 0; i-- {
		_ = s.close[i]() // only read
	}
}

// SourceOptions say how to open a copy.
type SourceOptions struct {
	Identity string // file of the private key for an encrypted backup
	// AllowUnsigned accepts a backup whose CA is not known, and a bare snapshot where a backup is expected.
	AllowUnsigned bool
}

// OpenSource opens and verifies the source of a recovery: "surviving-member", a backup (a file, or its address in a
// target off the hosts), or a bare etcd snapshot. A backup must be signed by the cluster CA that this machine knows. A
// bare snapshot is not signed, so it needs AllowUnsigned where a backup is expected. The error for a truncated,
// altered, forged or unrelated file is an *engine.ConfigError.
func (w *Workspace) OpenSource(ctx context.Context, from string, o SourceOptions) (*Source, error) {
	s := &Source{origin: plan.Copy{From: step.SurvivingMember}}
	if from == string(step.SurvivingMember) {
		return s, nil
	}
	err := w.openCopy(ctx, s, from, o)
	if err != nil {
		s.Close()
		return nil, &engine.ConfigError{Err: err}
	}
	return s, nil
}

func (w *Workspace) openCopy(ctx context.Context, s *Source, from string, o SourceOptions) error {
	path, err := from, error(nil)
	if strings.Contains(from, "://") {
		if path, err = w.fetchBackup(ctx, s, from); err != nil {
			return err
		}
	}
	encrypted, err := isEncrypted(path)
	switch {
	case err != nil:
		return fmt.Errorf("--from is surviving-member, a backup or a snapshot: %w", err)
	case encrypted:
		ca := ""
		if w.ca != nil {
			ca = w.ca.CA()
		}
		return s.openBackup(ctx, path, o, ca)
	}
	if reason := backupExpectedReason(from, o); reason != "" && !o.AllowUnsigned {
		return fmt.Errorf("%s is not an encrypted backup. It may be a bare snapshot of etcd, which is not "+
			"signed. %s, so it may have replaced a backup. Find out where it comes from; "+
			"kubeone recover --allow-unsigned accepts a bare snapshot anyway", from, reason)
	}
	return s.openSnapshot(path)
}

// backupExpectedReason returns why the copy is expected to be a backup, which is signed. It returns "" if the operator
// may have meant a bare snapshot.
func backupExpectedReason(from string, o SourceOptions) string {
	switch {
	case strings.Contains(from, "://"):
		return "It comes from a store"
	case o.Identity != "":
		return "--identity is for a backup"
	case backup.IsFileName(from):
		return "It has the name of a backup"
	}
	return ""
}

// fetchBackup downloads a backup from a target off the hosts to a temporary file with the same name. The file stays
// encrypted.
func (w *Workspace) fetchBackup(ctx context.Context, s *Source, address string) (string, error) {
	where, name := backup.SplitTarget(address)
	target, err := backup.OpenTarget(where, backup.TargetOptions{Getenv: os.Getenv, Host: w.openHost})
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "kubeone-backup-") // mode 0700
	if err != nil {
		return "", err
	}
	s.close = append(s.close, func() error { return os.RemoveAll(folder) })
	return backup.Fetch(ctx, target, name, folder, backup.MaxFetched)
}

// isEncrypted reports whether a file was encrypted with age. A truncated file counts if it contains at least one byte
// of the header.
func isEncrypted(path string) (bool, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator names it
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	const magic = "age-encryption.org/"
	start := make([]byte, len(magic))
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return n > 0 && strings.HasPrefix(magic, string(start[:n])), nil
}

func (s *Source) openBackup(ctx context.Context, path string, o SourceOptions, ca string) error {
	if o.Identity == "" {
		return fmt.Errorf("%s is encrypted: use --identity to specify the private key file of one of its recipients", path)
	}
	identities, err := backup.ReadIdentities(o.Identity)
	if err != nil {
		return err
	}
	a, err := backup.Open(path, identities...)
	if err != nil {
		return err
	}
	s.close = append(s.close, a.Close)
	if err := a.Verify(ctx); err != nil {
		return err
	}
	signature := ", signed by the cluster CA"
	switch err := a.VerifySignature(ca); {
	case err == nil:
	case o.AllowUnsigned && errors.Is(err, backup.ErrUnknownCA):
		signature = ", signature not verified"
	case errors.Is(err, backup.ErrUnknownCA):
		return fmt.Errorf("%w; --allow-unsigned accepts a backup whose CA is not known here", err)
	default:
		return err
	}
	m := a.Metadata
	s.origin = plan.Copy{
		From: step.FullBackup, SHA256: m.Snapshot.SHA256, Cluster: m.Cluster, CAHash: m.CAHash,
		KubernetesVersion: m.KubernetesVersion,
		About: fmt.Sprintf("%s, taken %s by %s, %s", filepath.Base(path), m.Created.Format(time.RFC3339),
			m.CreatedBy, describeSnapshot(m.Snapshot)) + signature,
		Members: snapshotMembers(m.Snapshot),
		Epoch:   m.Epoch, Revision: m.Snapshot.Revision, Hardening: m.Hardening,
	}
	s.content.Snapshot = func() (io.Reader, int64, error) {
		r, err := a.Snapshot()
		if err != nil {
			return nil, 0, err
		}
		size := r.Size()
		return r, size, nil
	}
	if s.content.PKI, err = a.PKI(); err != nil {
		return err
	}
	s.content.Encryption, s.origin.EncryptionPath, err = a.Encryption()
	return err
}

func (s *Source) openSnapshot(path string) error {
	info, err := snapshot.Verify(path)
	if err != nil {
		return err
	}
	s.origin = plan.Copy{
		From: step.BareSnapshot, SHA256: info.SHA256, About: filepath.Base(path) + ", " + describeSnapshot(info),
		Members: snapshotMembers(info), Revision: info.Revision,
	}
	if info.CA != nil {
		if s.origin.CAHash, err = backup.CAHash(info.CA); err != nil {
			return fmt.Errorf("snapshot %s: %w", path, err)
		}
	}
	s.content.Snapshot = func() (io.Reader, int64, error) {
		f, err := os.Open(path) // #nosec G304 -- the operator names it
		if err != nil {
			return nil, 0, err
		}
		s.close = append(s.close, f.Close)
		return f, info.Size, nil
	}
	return nil
}

func describeSnapshot(i snapshot.Info) string {
	return fmt.Sprintf("revision %d, %d keys", i.Revision, i.Keys)
}

func snapshotMembers(i snapshot.Info) []observed.Member {
	out := make([]observed.Member, 0, len(i.Members))
	for _, m := range i.Members {
		out = append(out, m.Observed())
	}
	return out
}
