package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// Source is a verified copy of a cluster's data. Close it.
type Source struct {
	about   plan.Copy
	content apply.Copy
	close   []func() error
}

// Close ends the use of the copy; a backup that was fetched is deleted.
func (s *Source) Close() {
	for i := len(s.close) - 1; i >= 0; i-- {
		_ = s.close[i]() // only read
	}
}

// OpenSource opens and verifies what a cluster is recovered from: "surviving-member", a backup (a file, or its address in a
// target off the hosts) with the file of a private key of one of its recipients, or a bare snapshot of etcd. A copy that is
// truncated, altered or something else is a *ConfigError.
func (e *Engine) OpenSource(ctx context.Context, from, identity string) (*Source, error) {
	s := &Source{about: plan.Copy{From: plan.SurvivingMember}}
	if from == string(plan.SurvivingMember) {
		return s, nil
	}
	err := e.openCopy(ctx, s, from, identity)
	if err != nil {
		s.Close()
		return nil, &ConfigError{err}
	}
	return s, nil
}

func (e *Engine) openCopy(ctx context.Context, s *Source, from, identity string) error {
	path, err := from, error(nil)
	if strings.Contains(from, "://") {
		if path, err = e.fetch(ctx, s, from); err != nil {
			return err
		}
	}
	encrypted, err := isEncrypted(path)
	switch {
	case err != nil:
		return fmt.Errorf("--from is surviving-member, a backup or a snapshot: %w", err)
	case encrypted:
		return s.openBackup(ctx, path, identity)
	}
	return s.openSnapshot(path)
}

// fetch gets a backup from a target off the hosts into a file that is deleted again. It stays encrypted.
func (e *Engine) fetch(ctx context.Context, s *Source, address string) (string, error) {
	where, name := backup.SplitTarget(address)
	target, err := backup.OpenTarget(where, backup.Surroundings{Getenv: os.Getenv, Host: func(t host.Target) (host.Host, error) {
		if err := e.pool.Check(t); err != nil {
			return nil, err
		}
		return e.pool.Host(t), nil
	}})
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "kubeone-backup-")
	if err != nil {
		return "", err
	}
	s.close = append(s.close, func() error { return os.Remove(f.Name()) })
	err = target.Get(ctx, name, f)
	return f.Name(), errors.Join(err, f.Close())
}

// isEncrypted reports whether the file begins as one that age wrote.
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

func (s *Source) openBackup(ctx context.Context, path, identity string) error {
	if identity == "" {
		return fmt.Errorf("%s is encrypted: give the file of a private key of one of its recipients with --identity", path)
	}
	identities, err := backup.ReadIdentities(identity)
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
	m := a.Metadata
	s.about = plan.Copy{
		From: plan.FullBackup, SHA256: m.Snapshot.SHA256, Cluster: m.Cluster, CAHash: m.CAHash, KubernetesVersion: m.KubernetesVersion,
		About:   fmt.Sprintf("%s, taken %s by %s, %s", filepath.Base(path), m.Created.Format(time.RFC3339), m.CreatedBy, describe(m.Snapshot)),
		Members: members(m.Snapshot), EncryptionPath: m.EncryptionPath,
		Epoch: m.Epoch, Revision: m.Snapshot.Revision,
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
	s.content.Encryption, _, err = a.Encryption()
	return err
}

func (s *Source) openSnapshot(path string) error {
	info, err := snapshot.Verify(path)
	if err != nil {
		return err
	}
	s.about = plan.Copy{
		From: plan.BareSnapshot, SHA256: info.SHA256, About: filepath.Base(path) + ", " + describe(info), Members: members(info), Revision: info.Revision,
	}
	if info.CA != nil {
		if s.about.CAHash, err = backup.CAHash(info.CA); err != nil {
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

func describe(i snapshot.Info) string { return fmt.Sprintf("revision %d, %d keys", i.Revision, i.Keys) }

func members(i snapshot.Info) []observed.Member {
	out := make([]observed.Member, 0, len(i.Members))
	for _, m := range i.Members {
		out = append(out, observed.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.Learner})
	}
	return out
}

// progress asks the members that are left up to which revision they have the data, where there is more than one to choose from.
// One that does not say is missing in the answer. Other than what was agreed upon, the revision is known without a quorum.
func (e *Engine) progress(ctx context.Context, s *Source, w observed.World) map[string]int64 {
	out := map[string]int64{}
	if s.about.From != plan.SurvivingMember {
		return out
	}
	const ask = `curl -q -s -m 2 http://127.0.0.1:2381/metrics`
	for _, h := range e.want.ControlPlane {
		if seen := w.Hosts[h.ID]; seen.Reach != observed.Reached || seen.EtcdData != observed.Yes {
			continue
		}
		res, err := e.hosts[h.ID].Run(ctx, host.Cmd{Name: "ask etcd how far it had got", Script: ask + ` | sed -n '/^` + revisionMetric + ` /p'`, Timeout: 10 * time.Second})
		if err != nil {
			continue
		}
		if n := revisionIn(string(res.Stdout)); n > 0 {
			out[h.ID] = n
		}
	}
	return out
}

// revisionMetric is the revision of the last change in a member's data.
const revisionMetric = "etcd_debugging_mvcc_current_revision"

// revisionIn reads it from a member's metrics; 0 where they do not tell.
func revisionIn(metrics string) int64 {
	for line := range strings.Lines(metrics) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), revisionMetric+" ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil && n > 0 && n < math.MaxInt64 {
			return int64(n)
		}
	}
	return 0
}
