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

// BackupOptions say for whom to encrypt a backup and where to store it. Empty fields mean the manifest's.
type BackupOptions struct {
	Recipients []string // age public keys, instead of the manifest's
	File       string   // on the operator's machine; in a directory, the file gets a generated name
	Target     string   // off the hosts, instead of the manifest's; with File and no Target only the file is written
	Keep       int      // number of backups of this cluster that the target keeps; 0 is the manifest's, if Prune is set
	Prune      bool     // remove the oldest backups from the target
}

// Backup describes a backup that was written.
type Backup struct {
	Name     string          // of the file
	Places   []string        // where it is
	Size     int64           // bytes, encrypted
	SHA256   string          // of the encrypted file
	Removed  []string        // names of older ones that were deleted from the target
	Metadata backup.Metadata // of its content
}

// Backup backs up everything needed to restore the cluster to one encrypted file, here or off the hosts
// (maintenance.Etcd.Backup). It changes no host, and checks recipients and target before it connects to one.
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
	if members.Alone() {
		w.opt.Warn("etcd has no quorum: the backup has what the member on " + members.Via() + " last knew")
	}
	if err := writeBackup(ctx, members, file, recipients, &result); err != nil {
		return Backup{}, err
	}
	if o.File != "" || target == nil {
		result.Places = append(result.Places, file)
	}
	if target != nil {
		err = w.storeBackup(ctx, target, file, o, members.Alone(), &result)
	}
	return result, err
}

func writeBackup(ctx context.Context, members *maintenance.Etcd, file string, recipients []age.Recipient,
	result *Backup) (err error) {
	sum := sha256.New()
	counted := &counter{}
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

// backupTarget returns where to store the backup; nil for a file only.
func (w *Workspace) backupTarget(o BackupOptions) (backup.Target, error) {
	address := o.Target
	if address == "" && o.File == "" {
		address = w.want.Backup.Target
	}
	if address == "" {
		if o.Prune {
			return nil, &engine.ConfigError{
				Err: errors.New("--keep is about a target, and none is given: set backup.target in the " +
					"manifest, or --to"),
			}
		}
		return nil, nil //nolint:nilnil // no target is valid
	}
	return w.openTarget(address)
}

// openTarget opens a place off the hosts, without connecting yet.
func (w *Workspace) openTarget(address string) (backup.Target, error) {
	t, err := backup.OpenTarget(address, backup.TargetOptions{Getenv: os.Getenv, Host: w.openHost})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return t, nil
}

// backupFile returns the path of the encrypted file, and a function that deletes it if it is only on its way to a
// target.
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

// storeBackup uploads the file to the target, and then deletes the oldest backups there. A backup of a cluster without
// a quorum may have less than older ones; then none is deleted.
func (w *Workspace) storeBackup(ctx context.Context, target backup.Target, file string, o BackupOptions, alone bool,
	result *Backup) error {
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
		return &engine.EtcdError{Err: fmt.Errorf("etcd has no quorum: the backup is stored as %s in %s, and none was "+
			"removed, because older ones may have more; see kubeone status", result.Name, target)}
	}
	var later []string
	result.Removed, later, err = backup.Keep(ctx, target, w.want.Name, cmp.Or(o.Keep, w.want.Backup.Keep, 1),
		result.Name)
	if len(later) > 0 {
		w.opt.Warn(laterNames(target.String(), later))
	}
	if err != nil {
		return fmt.Errorf("the backup is stored, and older ones could not be removed: %w", err)
	}
	return nil
}

// mostNamed is the maximum number of backups that a warning names.
const mostNamed = 10

// laterNames warns of backups with a later time in their names than the one just made.
func laterNames(target string, later []string) string {
	more := ""
	if n := len(later) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s has backups with a later time in their names than the one just made: %s%s. They do not "+
		"count, and stay there. Check the clock of this machine, and who can write to that place", target,
		strings.Join(later[:min(len(later), mostNamed)], ", "), more)
}

// counter counts the bytes written.
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
