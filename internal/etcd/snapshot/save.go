package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is a member that provides a snapshot; *etcd.Client implements it.
type Source interface {
	// Snapshot writes a snapshot to w as it arrives and returns its size. After an error, the caller must discard what
	// was written.
	Snapshot(ctx context.Context, w io.Writer) (int64, error)
}

// Save takes a snapshot, verifies it, and saves it in a file with mode 0600. It replaces an existing file only if the
// new snapshot is complete and verified.
func Save(ctx context.Context, from Source, path string) (Info, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".kubeone-*") // created with mode 0600
	if err != nil {
		return Info{}, err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // already renamed on success
	info, err := fillFile(ctx, from, tmp)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return Info{}, fmt.Errorf("snapshot to %s: %w", path, err)
	}
	return info, os.Rename(tmp.Name(), path)
}

// Take takes a snapshot, verifies it, and returns it in a file without a name. The file is in memory if the operating
// system supports that, else on disk. Take needs enough memory to hold the database. The caller must close the file.
func Take(ctx context.Context, from Source) (*os.File, Info, error) {
	f, err := scratchFile()
	if err != nil {
		return nil, Info{}, err
	}
	info, err := fillFile(ctx, from, f)
	if err != nil {
		return nil, Info{}, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// VerifyReader verifies a snapshot from a stream. It uses a temporary file as Take does.
func VerifyReader(r io.Reader) (Info, error) {
	f, err := scratchFile()
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = f.Close() }() // it has no name
	if _, err := io.Copy(f, r); err != nil {
		return Info{}, err
	}
	return VerifyFile(f)
}

func fillFile(ctx context.Context, from Source, f *os.File) (Info, error) {
	if _, err := from.Snapshot(ctx, f); err != nil {
		return Info{}, err
	}
	if err := f.Sync(); err != nil {
		return Info{}, err
	}
	return VerifyFile(f)
}
