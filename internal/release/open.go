package release

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Bundle is an open bundle. It is safe for concurrent use.
type Bundle struct {
	path    string
	file    *os.File
	index   Index
	offsets map[string]entryRange // by hex digest
}

// entryRange is the position of the content of an entry in the file.
type entryRange struct {
	offset, size int64
}

// Open opens a bundle. It checks that the file is complete, that the index is unaltered, and that each image has
// exactly the blobs in its manifest. It reads only headers and manifests, so it is fast. Verify checks the content. The
// caller must close the bundle.
//
// The error is a *FormatError, a *TruncatedError, an *AlteredError, or one from the file system.
func Open(path string) (*Bundle, error) {
	return openWithCheck(path, func(*Bundle) error { return nil })
}

// openWithCheck is like Open, but first calls check with a Bundle that has only its path and file.
func openWithCheck(path string, check func(*Bundle) error) (*Bundle, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	b := &Bundle{path: path, file: file, offsets: map[string]entryRange{}}
	if err := check(b); err != nil {
		_ = file.Close()
		return nil, err
	}
	if err := b.readAndCheck(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return b, nil
}

// Close closes the file. Blobs can no longer be read.
func (b *Bundle) Close() error { return b.file.Close() }

// Path returns the path that the bundle was opened with.
func (b *Bundle) Path() string { return b.path }

// Index returns the index of the bundle. The caller must not change it, because it is shared.
func (b *Bundle) Index() Index { return b.index }

// Blob returns the content with a digest ("sha256:…"): a binary, or a blob of an image. It reports whether the bundle
// contains it. The content is not verified; the caller must check its digest.
func (b *Bundle) Blob(digest string) (*io.SectionReader, bool) {
	at, ok := b.offsets[strings.TrimPrefix(digest, digestPrefix)]
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(b.file, at.offset, at.size), true
}

// readAndCheck reads and checks the whole file except the content of entries, apart from manifests.
func (b *Bundle) readAndCheck() error {
	info, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("open bundle: %w", err)
	}
	if info.IsDir() {
		return b.malformedError("it is a directory")
	}
	indexJSON, err := b.readIndex(info.Size())
	if err != nil {
		return err
	}
	want := b.index.fileSize(int64(len(indexJSON)))
	switch {
	case info.Size() < want:
		return &TruncatedError{Path: b.path, Has: info.Size(), Want: want}
	case info.Size() > want:
		return b.alteredError(fmt.Sprintf("%d bytes after its end", info.Size()-want))
	}
	if err := b.checkHeaders(indexJSON); err != nil {
		return err
	}
	return b.checkManifests()
}

// readIndex reads the first entry, checks it and sets b.index. It returns the JSON text.
func (b *Bundle) readIndex(fileSize int64) ([]byte, error) {
	head := make([]byte, blockSize)
	n, err := b.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	if n < blockSize {
		return nil, &TruncatedError{Path: b.path, Has: fileSize}
	}
	h, err := tar.NewReader(bytes.NewReader(head)).Next()
	if err != nil || h.Name != indexName || h.Typeflag != tar.TypeReg {
		return nil, b.malformedError("its first entry is not " + indexName)
	}
	if h.Size > maxIndex {
		return nil, b.malformedError(fmt.Sprintf("%s has %d bytes", indexName, h.Size))
	}
	if fileSize < blockSize+h.Size {
		return nil, &TruncatedError{Path: b.path, Has: fileSize}
	}
	text := make([]byte, h.Size)
	if _, err := b.file.ReadAt(text, blockSize); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	if err := json.Unmarshal(text, &b.index); err != nil {
		return nil, b.alteredError(fmt.Sprintf("%s (%v)", indexName, err))
	}
	if b.index.Format != FormatVersion {
		return nil,
			b.malformedError(fmt.Sprintf("it has format %d, but kubeone reads format %d; create it with the same "+
				"version of kubeone", b.index.Format, FormatVersion))
	}
	if err := b.index.checkConsistency(); err != nil {
		return nil, b.alteredError(fmt.Sprintf("%s (%v)", indexName, err))
	}
	return text, nil
}

// checkHeaders checks the headers of all entries and the digest of the index. The index determines the position and the
// bytes of every header. checkHeaders also sets b.offsets.
func (b *Bundle) checkHeaders(indexJSON []byte) error {
	offset, err := b.checkHeader(0, indexName, int64(len(indexJSON)))
	if err != nil {
		return err
	}
	end := blockSize + int64(len(indexJSON))
	if clean, err := b.hasOnlyZeros(end, offset-end); err != nil || !clean {
		return firstError(err, b.alteredError("padding of "+indexName))
	}
	for _, e := range b.index.Entries {
		b.offsets[e.SHA256] = entryRange{offset + blockSize, e.Size}
		if offset, err = b.checkHeader(offset, e.Name(), e.Size); err != nil {
			return err
		}
	}
	want := []byte(trailerText(indexJSON))
	if _, err := b.checkHeader(offset, trailerName, int64(len(want))); err != nil {
		return err
	}
	tail := make([]byte, paddedSize(int64(len(want)))+endSize)
	if _, err := b.file.ReadAt(tail, offset+blockSize); err != nil {
		return fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	if !bytes.Equal(tail, append(want, make([]byte, len(tail)-len(want))...)) {
		return b.alteredError(indexName + " or " + trailerName)
	}
	return nil
}

// checkHeader checks the header at offset and returns the offset of the next one.
func (b *Bundle) checkHeader(offset int64, name string, size int64) (int64, error) {
	want, err := tarHeader(name, size)
	if err != nil {
		return 0, b.malformedError(err.Error())
	}
	have := make([]byte, blockSize)
	if _, err := b.file.ReadAt(have, offset); err != nil {
		return 0, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	if !bytes.Equal(have, want) {
		return 0, b.alteredError("header of " + name)
	}
	return offset + blockSize + paddedSize(size), nil
}

// hasOnlyZeros reports whether a short range of the file, such as padding, contains only zeros.
func (b *Bundle) hasOnlyZeros(offset, size int64) (bool, error) {
	have := make([]byte, size)
	if _, err := b.file.ReadAt(have, offset); err != nil {
		return false, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	return len(bytes.Trim(have, "\x00")) == 0, nil
}

func (b *Bundle) malformedError(reason string) error {
	return &FormatError{Path: b.path, Reason: reason}
}

func (b *Bundle) alteredError(entry string) error {
	return &AlteredError{Path: b.path, Entries: []string{entry}}
}
