package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"kubeone/internal/engine/maintenance"
	"kubeone/internal/etcd/snapshot"
)

// SaveSnapshot saves a verified snapshot of etcd on this machine, mode 0600, and returns its path. It contains all
// Secrets of the cluster. In a directory the file gets a generated name. A snapshot of another cluster than the API's
// is an error and not kept.
func (w *Workspace) SaveSnapshot(ctx context.Context, members *maintenance.Etcd,
	path string) (string, snapshot.Info, error) {
	if stat, err := os.Stat(path); err == nil && stat.IsDir() {
		path = filepath.Join(path, snapshot.FileName(w.want.Name, w.opt.Now(), "by-hand"))
	}
	saved := false
	info, err := members.Snapshot(func(from snapshot.Source) (info snapshot.Info, err error) {
		info, err = snapshot.Save(ctx, from, path)
		saved = err == nil
		return info, err
	})
	if err != nil && saved {
		err = errors.Join(err, os.Remove(path))
	}
	return path, info, err
}
