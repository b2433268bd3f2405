package release

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"kubeone/internal/model/desired"
)

// FormatVersion is the version of the bundle's format. A bundle is a POSIX tar (ustar, so that each header is one block
// of 512 bytes) with these entries:
//
//	bundle.json          an Index
//	blobs/sha256/<hex>   the entries of the Index in its order: binaries' files, then the images' manifests,
//	                     configs and layers
//	bundle.sha256        the digest of bundle.json, as sha256sum writes it
//
// followed by two zero blocks. The length of the file follows from bundle.json alone, which finds a truncated file
// without reading it, and bundle.json has the digest of everything else.
const FormatVersion = 1

// The names of entries, and limits that no real bundle comes near.
const (
	indexName    = "bundle.json"
	trailerName  = "bundle.sha256"
	blobPrefix   = "blobs/sha256/"
	digestPrefix = "sha256:"
	blockSize    = 512
	endSize      = 2 * blockSize
	maxIndex     = 8 << 20
	maxEntries   = 10000
	maxImages    = 1000
	maxManifest  = 4 << 20
	maxEntrySize = 1 << 33 // what a ustar header can say
)

// Index describes a bundle.
type Index struct {
	Format            int               `json:"format"` // FormatVersion
	KubernetesVersion string            `json:"kubernetesVersion"`
	Arch              string            `json:"arch"`
	CNI               string            `json:"cni"`
	KubeProxy         bool              `json:"kubeProxy"`
	CreatedBy         string            `json:"createdBy"` // the program and its version
	Artifacts         desired.Artifacts `json:"artifacts"` // under their official names and locations
	Entries           []Entry           `json:"entries"`
}

// Entry is one content-addressed part of a bundle.
type Entry struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
	Holds  string `json:"holds"`  // what it is, for a person
}

// Name is the entry's name in the tar.
func (e Entry) Name() string { return blobPrefix + e.SHA256 }

// Size is the sum of the entries' sizes.
func (i Index) Size() int64 {
	var sum int64
	for _, e := range i.Entries {
		sum += e.Size
	}
	return sum
}

// padded is the room that content takes in a tar.
func padded(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// fileSize is the length of the whole tar.
func (i Index) fileSize(indexSize int64) int64 {
	total := blockSize + padded(indexSize)
	for _, e := range i.Entries {
		total += blockSize + padded(e.Size)
	}
	return total + blockSize + padded(int64(len(trailer(nil)))) + endSize
}

// trailer is the content of the last entry.
func trailer(indexJSON []byte) string {
	sum := sha256.Sum256(indexJSON)
	return hex.EncodeToString(sum[:]) + "  " + indexName + "\n"
}

// header is the 512 bytes before an entry. It is the same for the same name and size, whoever writes it and when.
func header(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR,
	})
	if err == nil && b.Len() != blockSize {
		err = fmt.Errorf("header has %d bytes", b.Len())
	}
	if err != nil {
		return nil, fmt.Errorf("tar header of %s (%d bytes): %w", name, size, err)
	}
	return b.Bytes(), nil
}

// writeStream writes an entry of a known size.
func writeStream(w io.Writer, name string, size int64, content io.Reader) error {
	head, err := header(name, size)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if _, err := io.CopyN(w, content, size); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = w.Write(make([]byte, padded(size)-size))
	return err
}

func writeEntry(w io.Writer, name string, content []byte) error {
	return writeStream(w, name, int64(len(content)), bytes.NewReader(content))
}
