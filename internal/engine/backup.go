package engine

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"kubeone/internal/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/plan"
)

// BackupOptions say for whom a backup is encrypted and where it goes. Empty fields are the manifest's.
type BackupOptions struct {
	Recipients []string // age public keys, in place of the manifest's
	File       string   // on the operator's machine; a folder is given a file with a name of its own
	Target     string   // off the hosts, in place of the manifest's; with File and no Target only the file is written
	Keep       int      // backups of this cluster that the target keeps; 0 is the manifest's, where Prune is set
	Prune      bool     // remove the oldest backups from the target
}

// Backup is a backup that was written.
type Backup struct {
	Name     string          // of the file
	Places   []string        // where it is
	Size     int64           // bytes, encrypted
	SHA256   string          // of the encrypted file
	Removed  []string        // names of older ones that were removed from the target
	Metadata backup.Metadata // of what is in it
}

// Backup takes a verified snapshot of etcd, reads the cluster's keys, and writes both with the manifest into one encrypted
// file. Nothing of it is on a disk unencrypted at any time, and no host is changed. Mistakes in recipients and target are
// found before a host is asked.
func (e *Engine) Backup(ctx context.Context, o BackupOptions) (Backup, error) {
	recipients, err := e.recipients(o)
	if err != nil {
		return Backup{}, err
	}
	target, err := e.backupTarget(o)
	if err != nil {
		return Backup{}, err
	}
	now := e.opt.Now()
	result := Backup{Name: backup.FileName(e.want.Name, now)}
	file, remove, err := e.backupFile(o, target, result.Name)
	if err != nil {
		return Backup{}, err
	}
	defer remove()
	members, err := e.OpenEtcd(ctx)
	if err != nil {
		return Backup{}, err
	}
	defer members.Close()
	if err := members.backup(ctx, file, recipients, now, &result); err != nil {
		return Backup{}, err
	}
	if o.File != "" || target == nil {
		result.Places = append(result.Places, file)
	}
	if target != nil {
		err = e.store(ctx, target, file, o, members.Alone(), &result)
	}
	return result, err
}

func (e *Engine) recipients(o BackupOptions) ([]age.Recipient, error) {
	keys := o.Recipients
	if len(keys) == 0 {
		keys = e.want.Backup.Recipients
	}
	recipients, err := backup.ParseRecipients(keys)
	if err != nil {
		return nil, &ConfigError{err}
	}
	return recipients, nil
}

// backupTarget is where the backup is kept, nil for a file only.
func (e *Engine) backupTarget(o BackupOptions) (backup.Target, error) {
	address := o.Target
	if address == "" && o.File == "" {
		address = e.want.Backup.Target
	}
	if address == "" {
		if o.Prune {
			return nil, &ConfigError{errors.New("--keep is about a target, and none is given: set backup.target in the manifest, or --to")}
		}
		return nil, nil //nolint:nilnil // no target is an answer
	}
	return e.Target(address)
}

// Target opens a place off the hosts. It connects to nothing yet.
func (e *Engine) Target(address string) (backup.Target, error) {
	t, err := backup.OpenTarget(address, backup.Surroundings{Getenv: os.Getenv, Host: func(t host.Target) (host.Host, error) {
		if err := e.pool.Check(t); err != nil {
			return nil, err
		}
		return e.pool.Host(t), nil
	}})
	if err != nil {
		return nil, &ConfigError{err}
	}
	return t, nil
}

// backupFile is where the encrypted file is written, and what removes it if it is only on its way to a target.
func (e *Engine) backupFile(o BackupOptions, target backup.Target, name string) (string, func(), error) {
	if target != nil && o.File == "" {
		dir, err := os.MkdirTemp("", "kubeone-backup-") // mode 0700
		return filepath.Join(dir, name), func() { _ = os.RemoveAll(dir) }, err
	}
	file := cmp.Or(o.File, name)
	stat, err := os.Stat(file)
	if err == nil && stat.IsDir() {
		file = filepath.Join(file, name)
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return "", nil, &ConfigError{err}
	}
	return file, func() {}, nil
}

// backup reads all there is to keep and writes it, encrypted.
func (e *Etcd) backup(ctx context.Context, file string, recipients []age.Recipient, now time.Time, result *Backup) error {
	content, err := e.content(ctx, now)
	if err != nil {
		return err
	}
	taken, info, err := snapshot.Take(ctx, e.client)
	if err != nil {
		return etcdError(err)
	}
	defer func() { _ = taken.Close() }() // its memory is freed
	if err := info.OfCluster(e.seen.World.API.ClusterID); err != nil {
		return &EtcdError{fmt.Errorf("snapshot of etcd on %s: %w", e.Via(), err)}
	}
	content.Snapshot, content.Info = taken, info
	sum := sha256.New()
	err = backup.WriteFile(file, func(w io.Writer) (err error) {
		counted := &counter{w: io.MultiWriter(w, sum)}
		result.Metadata, err = backup.Write(counted, content, recipients)
		result.Size = counted.n
		return err
	})
	result.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return err
}

// content is all that a backup has besides the snapshot.
func (e *Etcd) content(ctx context.Context, now time.Time) (backup.Content, error) {
	via := e.client.Via()
	keys, err := readKeys(ctx, e.engine.hosts[via])
	if err != nil {
		return backup.Content{}, err
	}
	if e.Alone() {
		e.engine.opt.Warn("etcd has no quorum: the backup has what the member on " + e.Via() + " last knew")
	}
	c := backup.Content{
		Cluster: e.engine.want.Name, CreatedBy: Holder(), Created: now, Keys: keys, Manifest: e.engine.loaded.ManifestText,
		EtcdVersion: e.client.Greeting().Version, Epoch: plan.Epoch(plan.Plan{}, e.engine.want, e.seen.World),
		KubernetesVersion: cmp.Or(e.seen.World.API.Version, e.seen.World.Hosts[via].APIServerVersion, e.engine.want.KubernetesVersion),
	}
	return c, nil
}

// keysWithin is how long reading one file from a host may take.
const keysWithin = time.Minute

// readKeys reads the CAs, the service-account keys and the configuration of encryption at rest from a control-plane host.
func readKeys(ctx context.Context, h host.Host) (backup.Keys, error) {
	read := func(name, text string, args ...string) ([]byte, error) {
		res, err := h.Run(ctx, host.Cmd{Name: name, Script: text, Args: args, Secret: true, Timeout: keysWithin})
		return res.Stdout, err
	}
	archive, err := read("read the CAs", "tar -C /etc/kubernetes/pki -cf - "+strings.Join(backup.PKINames(), " "))
	if err != nil {
		return backup.Keys{}, err
	}
	keys := backup.Keys{}
	if keys.PKI, err = untar(archive); err != nil {
		return backup.Keys{}, fmt.Errorf("%s: read the CAs: %w", h.Name(), err)
	}
	path, err := read("look for encryption at rest", `sed -n 's/^ *- --encryption-provider-config=//p' /etc/kubernetes/manifests/kube-apiserver.yaml`)
	if keys.EncryptionPath = strings.TrimSpace(string(path)); err != nil || keys.EncryptionPath == "" {
		return keys, err
	}
	keys.Encryption, err = read("read the configuration of encryption at rest", `cat -- "$1"`, keys.EncryptionPath)
	return keys, err
}

func untar(archive []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	t := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if out[header.Name], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
}

// store brings the file to the target, and then removes the oldest there. A backup of a cluster without a quorum may have less
// than older ones: then none is removed.
func (e *Engine) store(ctx context.Context, target backup.Target, file string, o BackupOptions, alone bool, result *Backup) error {
	f, err := os.Open(file) // #nosec G304 -- written above
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if err := target.Put(ctx, result.Name, f, result.Size); err != nil {
		return fmt.Errorf("the backup was made and not stored: %w", err)
	}
	result.Places = append(result.Places, target.String())
	if !o.Prune {
		return nil
	}
	if alone {
		return &EtcdError{fmt.Errorf("etcd has no quorum: the backup is stored as %s in %s, and none was removed, because older ones may have more; see kubeone status", result.Name, target)}
	}
	result.Removed, err = backup.Keep(ctx, target, e.want.Name, cmp.Or(o.Keep, e.want.Backup.Keep, 1), result.Name)
	if err != nil {
		return fmt.Errorf("the backup is stored, and older ones could not be removed: %w", err)
	}
	return nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
