package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A bbolt database begins with two pages that each hold a copy of its meta data, written alternately. See
// go.etcd.io/bbolt/internal/common: page.go (header) and meta.go. bbolt uses the machine's byte order; every machine
// that Kubernetes supports for etcd is little-endian.
const (
	pageHeader = 16
	metaMagic  = 0xED0CDAED
	metaSize   = 64 // magic, version, page size, flags, root, its sequence, free list, pages, transaction, checksum
	maxPage    = 64 << 10
	sector     = 512
)

// meta is the part of the meta data of a database that is needed here.
type meta struct {
	pageSize int64
	pages    uint64 // number of pages in the database
	txid     uint64
}

// sizeBytes returns the length of the database in bytes.
func (m meta) sizeBytes() int64 { return int64(m.pages) * m.pageSize } // #nosec G115 -- checked in parseMeta

// checkSize returns an error if the size of the file is not that stated in its database plus the checksum.
func checkSize(f io.ReaderAt, size int64) error {
	if size == 0 {
		return ErrEmpty
	}
	m, err := newestMeta(f, size)
	if err != nil {
		return err
	}
	want := m.sizeBytes() + SumSize
	switch {
	case size == want:
		return nil
	case size < want:
		return fmt.Errorf("%w: it has %d of %d bytes", ErrTruncated, size, want)
	case size%sector == 0:
		return ErrNoChecksum
	}
	return fmt.Errorf("%w; it has %d bytes too many", ErrAltered, size-want)
}

// newestMeta returns the valid copy of the meta data with the latest transaction. The other copy may be incomplete or
// from the previous transaction.
func newestMeta(f io.ReaderAt, size int64) (meta, error) {
	first, err := readMeta(f, 0)
	if err != nil {
		return meta{}, err
	}
	var best *meta
	if first != nil {
		best = first
	}
	// if the first copy is damaged, the page size is unknown
	for page := int64(1 << 10); page <= maxPage; page *= 2 {
		second, err := readMeta(f, page)
		if err != nil {
			return meta{}, err
		}
		if second != nil && second.pageSize == page && (best == nil || second.txid > best.txid) {
			best = second
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case size < 2*4096 && looksLikeMeta(f):
		return meta{}, ErrTruncated
	}
	return meta{}, fmt.Errorf("%w, or its beginning is damaged", ErrNotSnapshot)
}

func looksLikeMeta(f io.ReaderAt) bool {
	magic := make([]byte, 4)
	_, err := f.ReadAt(magic, pageHeader)
	return err == nil && binary.LittleEndian.Uint32(magic) == metaMagic
}

// readMeta reads the copy on the page at that offset. It returns nil if the copy is not valid.
func readMeta(f io.ReaderAt, at int64) (*meta, error) {
	text := make([]byte, metaSize)
	if _, err := f.ReadAt(text, at+pageHeader); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // no meta data is an answer
	} else if err != nil {
		return nil, err
	}
	return parseMeta(text), nil
}

func parseMeta(text []byte) *meta {
	sum := fnv.New64a()
	_, _ = sum.Write(text[:metaSize-8])
	m := meta{
		pageSize: int64(binary.LittleEndian.Uint32(text[8:])), pages: binary.LittleEndian.Uint64(text[40:]),
		txid: binary.LittleEndian.Uint64(text[48:]),
	}
	if binary.LittleEndian.Uint32(text) != metaMagic || binary.LittleEndian.Uint64(text[metaSize-8:]) != sum.Sum64() ||
		m.pageSize == 0 || m.pageSize > maxPage || m.pages > 1<<40 {
		return nil
	}
	return &m
}

// checkSum returns ErrAltered if the database does not match the checksum after it, and otherwise the checksum of the
// whole file.
func checkSum(f io.ReaderAt, size int64) (string, error) {
	file, database := sha256.New(), sha256.New()
	content := io.NewSectionReader(f, 0, size)
	if _, err := io.CopyN(io.MultiWriter(file, database), content, size-SumSize); err != nil {
		return "", err
	}
	want := make([]byte, SumSize)
	if _, err := io.ReadFull(content, want); err != nil {
		return "", err
	}
	if !bytes.Equal(want, database.Sum(nil)) {
		return "", ErrAltered
	}
	_, _ = file.Write(want)
	return hex.EncodeToString(file.Sum(nil)), nil
}
