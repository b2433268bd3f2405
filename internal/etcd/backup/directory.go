package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// directory is a backup target in a directory on the operator's machine.
type directory struct{ path string }

func openDirectory(path string) (Target, error) {
	absolute, err := filepath.Abs(path)
	if path == "" || err != nil {
		return nil, errors.Join(errors.New("backup target: the path is missing"), err)
	}
	return directory{absolute}, nil
}

// String implements Target.
func (d directory) String() string { return d.path }

// Put implements Target.
func (d directory) Put(_ context.Context, name string, content io.ReaderAt, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	return WriteFile(filepath.Join(d.path, name), func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(content, 0, size))
		return err
	})
}

// Get implements Target.
func (d directory) Get(_ context.Context, name string, w io.Writer) error {
	if err := checkName(name); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(d.path, name)) // #nosec G304 -- a plain name in the operator's folder
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

// List implements Target.
func (d directory) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Delete implements Target.
func (d directory) Delete(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(d.path, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteFile atomically creates or replaces a file with mode 0600. If write fails, an existing file at path is not
// changed. The directory must exist.
func WriteFile(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".kubeone-*") // created with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // already renamed on success
	err = write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
