package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"kubeone/internal/engine/maintenance"
	"kubeone/internal/etcd/snapshot"
)

// SaveSnapshot saves a verified etcd snapshot on this machine, with mode 0600, and returns its path. The snapshot
// contains all Secrets in the cluster. If path is a directory, the file name is generated. If the snapshot is from a
// cluster other than that of the API server, SaveSnapshot removes it and returns an error.
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
