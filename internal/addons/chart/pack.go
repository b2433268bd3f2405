package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"helm.sh/helm/v4/pkg/ignore"
)

const maxFiles = 5_000 // in a chart folder

// Pack returns the archive of a chart folder, without the files in its .helmignore. The same files give the same
// archive. Links and special files are errors.
func Pack(name string, folder fs.FS) ([]byte, error) {
	ignored, err := readIgnored(folder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	files, size := 0, 0
	err = fs.WalkDir(folder, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && ignored.Ignore(file, info):
			return fs.SkipDir
		case entry.IsDir() || ignored.Ignore(file, info):
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", file)
		}
		content, err := readFile(folder, file)
		if err != nil {
			return err
		}
		if files, size = files+1, size+len(content); files > maxFiles || size > MaxArchiveBytes {
			return fmt.Errorf("the folder has more than %d files or %d MiB", maxFiles, MaxArchiveBytes>>20)
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(name, file), Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// readFile reads at most MaxArchiveBytes and one byte.
func readFile(folder fs.FS, file string) ([]byte, error) {
	f, err := folder.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxArchiveBytes+1))
}

func readIgnored(folder fs.FS) (*ignore.Rules, error) {
	text, err := fs.ReadFile(folder, ignore.HelmIgnore)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rules, err := ignore.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return rules, nil
}
