package workspace

import (
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

	"filippo.io/age"

	"kubeone/internal/engine"
	"kubeone/internal/engine/maintenance"
	"kubeone/internal/etcd/backup"
)

// BackupOptions say whose keys can decrypt a backup and where to store it. For empty fields, the manifest applies.
type BackupOptions struct {
	Recipients []string // age public keys, instead of those in the manifest
	File       string   // on this machine; for a directory, the file name is generated
	Target     string   // off the hosts; "" means the target in the manifest or, if File is set, none
	Keep       int      // backups of this cluster to keep in the target if Prune is set; 0 means the manifest
	Prune      bool     // remove the oldest backups from the target
}

// Backup describes a backup that was created.
type Backup struct {
	Name     string          // file name
	Places   []string        // where it is stored
	Size     int64           // bytes, encrypted
	SHA256   string          // of the encrypted file
	Removed  []string        // names of older backups that were deleted from the target
	Metadata backup.Metadata // describes the content
}

// Backup writes everything needed to restore the cluster to one encrypted file, on this machine or in the configured
// backup target; see maintenance.Etcd.Backup. It does not change any host. It validates the recipients and the target
// before it connects to a host.
func (w *Workspace) Backup(ctx context.Context, o BackupOptions) (Backup, error) {
	recipients, err := w.backupRecipients(o)
	if err != nil {
		return Backup{}, err
	}
	target, err := w.backupTarget(o)
	if err != nil {
		return Backup{}, err
	}
	result := Backup{Name: backup.FileName(w.want.Name, w.opt.Now())}
	file, remove, err := backupFile(o, target, result.Name)
	if err != nil {
		return Backup{}, err
	}
	defer remove()
	members, err := maintenance.Open(ctx, w.Engine)
	if err != nil {
		return Backup{}, err
	}
	defer members.Close()
	if members.WithoutQuorum() {
		w.opt.Warn("etcd has no quorum: the backup contains the data of the member on " + members.ConnectedHost() +
			", which may be outdated")
	}
	if err := writeBackup(ctx, members, file, recipients, &result); err != nil {
		return Backup{}, err
	}
	if o.File != "" || target == nil {
		result.Places = append(result.Places, file)
	}
	if target != nil {
		err = w.storeBackup(ctx, target, file, o, members.WithoutQuorum(), &result)
	}
	return result, err
}

func writeBackup(ctx context.Context, members *maintenance.Etcd, file string, recipients []age.Recipient,
	result *Backup) (err error) {
	sum := sha256.New()
	counted := &byteCounter{}
	result.Metadata, err = members.Backup(ctx, recipients, func(write func(io.Writer) error) error {
		return backup.WriteFile(file, func(w io.Writer) error {
			counted.w = io.MultiWriter(w, sum)
			return write(counted)
		})
	})
	result.Size, result.SHA256 = counted.n, hex.EncodeToString(sum.Sum(nil))
	return err
}

func (w *Workspace) backupRecipients(o BackupOptions) ([]age.Recipient, error) {
	keys := o.Recipients
	if len(keys) == 0 {
		keys = w.want.Backup.Recipients
	}
	recipients, err := backup.ParseRecipients(keys)
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return recipients, nil
}

// backupTarget returns the target for the backup, or nil if the backup is only written to a file.
func (w *Workspace) backupTarget(o BackupOptions) (backup.Target, error) {
	address := o.Target
	if address == "" && o.File == "" {
		address = w.want.Backup.Target
	}
	if address == "" {
		if o.Prune {
			return nil, &engine.ConfigError{
				Err: errors.New("--keep needs a target: set backup.target in the manifest, or use --to"),
			}
		}
		return nil, nil //nolint:nilnil // no target is valid
	}
	return w.openTarget(address)
}

// openTarget opens a target off the hosts. It does not connect yet.
func (w *Workspace) openTarget(address string) (backup.Target, error) {
	t, err := backup.OpenTarget(address, backup.TargetOptions{Getenv: os.Getenv, Host: w.openHost})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return t, nil
}

// backupFile returns the path of the encrypted file, and a function to call at the end. That function deletes the file
// if it is only a temporary file for the upload to a target.
func backupFile(o BackupOptions, target backup.Target, name string) (string, func(), error) {
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
		return "", nil, &engine.ConfigError{Err: err}
	}
	return file, func() {}, nil
}

// storeBackup uploads the file to the target, and then deletes the oldest backups there. Without quorum it deletes
// none, because older backups may contain data that this one does not.
func (w *Workspace) storeBackup(ctx context.Context, target backup.Target, file string, o BackupOptions, noQuorum bool,
	result *Backup) error {
	f, err := os.Open(file) // #nosec G304 -- written above
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if err := target.Put(ctx, result.Name, f, result.Size); err != nil {
		return fmt.Errorf("the backup was created but could not be stored: %w", err)
	}
	result.Places = append(result.Places, target.String())
	if !o.Prune {
		return nil
	}
	if noQuorum {
		return &engine.EtcdError{Err: fmt.Errorf("etcd has no quorum: the backup is stored as %s in %s, but no older "+
			"backup was removed, because it may contain more data; see kubeone status", result.Name, target)}
	}
	var later []string
	result.Removed, later, err = backup.Keep(ctx, target, w.want.Name, cmp.Or(o.Keep, w.want.Backup.Keep, 1),
		result.Name)
	if len(later) > 0 {
		w.opt.Warn(laterBackupsWarning(target.String(), later))
	}
	if err != nil {
		return fmt.Errorf("the backup is stored, but older backups could not be removed: %w", err)
	}
	return nil
}

// maxNamed is the maximum number of backups that a warning lists.
const maxNamed = 10

// laterBackupsWarning returns a warning about backups whose names contain a later time than that of the new backup.
func laterBackupsWarning(target string, later []string) string {
	more := ""
	if n := len(later) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s has backups with a later time in their names than the one just made: %s%s. They "+
		"were neither counted nor removed. Check the clock of this machine, and who can write to the target", target,
		strings.Join(later[:min(len(later), maxNamed)], ", "), more)
}

// byteCounter counts the bytes written to w.
type byteCounter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
