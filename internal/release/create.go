package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CreateOptions are the things about creating a bundle that do not change which release is in it.
type CreateOptions struct {
	// CreatedBy is recorded in the bundle: the program and its version.
	CreatedBy string
	// SpoolDir is where parts wait until they are written; "" means the system's directory for temporary files. At most
	// eight parts wait at a time, the largest of which are about 100 MB.
	SpoolDir string
	// Progress is called while content arrives, one call at a time, often; nil means nobody wants to know.
	Progress func(Progress)
}

// Progress is how far the creation of a bundle has come.
type Progress struct {
	Done                  string // what has just been written; "" when only more bytes have arrived
	Entries, TotalEntries int
	Bytes, TotalBytes     int64
}

// Created is a bundle that was written.
type Created struct {
	Index
	SHA256 string // hex, of the whole file
}

// CreateFile creates a bundle at path, which appears complete or not at all.
func CreateFile(ctx context.Context, path string, src Source, want Want, o CreateOptions) (Created, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-*")
	if err != nil {
		return Created{}, fmt.Errorf("create bundle %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // after the rename there is nothing under this name
	if o.SpoolDir == "" {
		o.SpoolDir = filepath.Dir(path)
	}
	hash := sha256.New()
	index, err := Create(ctx, io.MultiWriter(temp, hash), src, want, o)
	if err == nil {
		err = finish(temp, path)
	}
	_ = temp.Close()
	if err != nil {
		return Created{}, fmt.Errorf("create bundle %s: %w", path, err)
	}
	return Created{Index: index, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// finish makes a complete temporary file the one that people see.
func finish(temp *os.File, path string) error {
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// Create writes a bundle of the wanted release to w. The same content and options make the same bytes, whichever
// source it comes from: names and locations in a bundle are the official ones. Digests are fetched anew; the
// cache is not read.
//
// Errors are those of Resolve, a *DigestError when content is not what its digest promises, or w's. After an error
// what w has got is not a bundle.
func Create(ctx context.Context, w io.Writer, src Source, want Want, o CreateOptions) (Index, error) {
	src.CacheDir = ""
	r, err := newResolver(src, want)
	if err != nil {
		return Index{}, err
	}
	artifacts, contents, err := r.contents(ctx)
	if err != nil {
		return Index{}, err
	}
	index := Index{
		Format: FormatVersion, KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, CNI: want.CNI,
		KubeProxy: want.KubeProxy, CreatedBy: o.CreatedBy, Artifacts: artifacts,
	}
	for _, c := range contents {
		index.Entries = append(index.Entries, c.Entry)
	}
	dir, err := os.MkdirTemp(o.SpoolDir, ".kubeone-bundle-*")
	if err != nil {
		return Index{}, fmt.Errorf("make a directory for parts of the bundle: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := index.write(ctx, w, &spool{dir: dir, pause: src.pause(), contents: contents}, o.Progress); err != nil {
		return Index{}, err
	}
	return index, nil
}

// write writes the whole tar.
func (i Index) write(ctx context.Context, w io.Writer, parts *spool, progress func(Progress)) error {
	indexJSON, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode %s: %w", indexName, err)
	}
	count := &tally{report: progress, now: Progress{TotalEntries: len(i.Entries), TotalBytes: i.Size()}}
	parts.count = count.bytes
	if err := writeEntry(w, indexName, indexJSON); err != nil {
		return err
	}
	err = parts.each(ctx, func(c content, file io.Reader) error {
		if err := writeStream(w, c.Name(), c.Size, file); err != nil {
			return err
		}
		count.entry(c.Holds)
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeEntry(w, trailerName, []byte(trailer(indexJSON))); err != nil {
		return err
	}
	_, err = w.Write(make([]byte, endSize))
	return err
}
