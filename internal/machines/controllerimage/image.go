// Package controllerimage builds the container image for the controllers from the file of the running program. The
// image has one layer that contains this file, so nothing is pulled or compiled. The same file always results in the
// same digests.
package controllerimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubeone/internal/model/desired"
)

// repository is the image name without a tag. The registry does not exist, because the image is never pulled.
const repository = "kubeone.k8c.io/kubeone"

// program is the program's path in the image.
const program = "/kubeone"

// tagDigits is the number of hex digits from the program digest in the tag.
const tagDigits = 16

// Image is an image whose layer is read from the program file on demand. Its methods may be called concurrently.
type Image struct {
	Name   string // tagged with the program digest: "kubeone.k8c.io/kubeone:sha256-0123456789abcdef"
	Digest string // digest of the image manifest: "sha256:…"
	// Blobs are manifest, config and layer.
	Blobs []desired.Blob

	file     *os.File
	size     int64
	texts    map[string][]byte // manifest and config, by digest in hex
	layer    string            // digest in hex
	head     []byte            // of the layer, before the program
	tail     []byte            // of the layer, after the program
	modified time.Time
}

// New builds the image of a program for a GOARCH. It reads the file once to compute the digests, and keeps it open
// until Close is called.
func New(path, arch string) (*Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	i := &Image{file: file, texts: map[string][]byte{}}
	if err := i.computeDigests(arch); err != nil {
		return nil, errors.Join(fmt.Errorf("build an image from %s: %w", path, err), file.Close())
	}
	return i, nil
}

// Close closes the program file. After that, readers of the layer fail.
func (i *Image) Close() error { return i.file.Close() }

// Blob returns a new reader for the content with this digest (hex) and its size. It returns false if the image does not
// contain the digest. Reading the layer fails if the program file has changed since New.
func (i *Image) Blob(sum string) (io.Reader, int64, bool) {
	if sum == i.layer {
		return i.openLayer(), i.layerSize(), true
	}
	text, ok := i.texts[sum]
	return bytes.NewReader(text), int64(len(text)), ok
}

func (i *Image) openLayer() io.Reader {
	return io.MultiReader(bytes.NewReader(i.head), io.NewSectionReader(i.file, 0, i.size),
		changeCheck{i}, bytes.NewReader(i.tail))
}

func (i *Image) layerSize() int64 { return int64(len(i.head)) + i.size + int64(len(i.tail)) }

// changeCheck is an empty reader that returns an error if the program file has changed.
type changeCheck struct{ *Image }

// Read implements io.Reader.
func (s changeCheck) Read([]byte) (int, error) {
	info, err := s.file.Stat()
	switch {
	case err != nil:
		return 0, err
	case info.Size() != s.size || !info.ModTime().Equal(s.modified):
		return 0, fmt.Errorf("%s has changed since the image was built from it", s.file.Name())
	}
	return 0, io.EOF
}

func (i *Image) computeDigests(arch string) error {
	info, err := i.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	i.size, i.modified = info.Size(), info.ModTime()
	if i.head, i.tail, err = archiveFrame(i.size); err != nil {
		return err
	}
	ofProgram, ofLayer := sha256.New(), sha256.New()
	_, _ = ofLayer.Write(i.head) // a hash never fails
	n, err := io.Copy(io.MultiWriter(ofProgram, ofLayer), io.NewSectionReader(i.file, 0, i.size))
	if err == nil && n != i.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	_, _ = ofLayer.Write(i.tail)
	i.Name = repository + ":sha256-" + hex.EncodeToString(ofProgram.Sum(nil))[:tagDigits]
	i.layer = hex.EncodeToString(ofLayer.Sum(nil))
	return i.composeManifest(arch)
}

// archiveFrame returns the parts of the tar archive that come before and after a program of this size.
func archiveFrame(size int64) (head, tail []byte, err error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: program[1:], Mode: 0o755, Size: size, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR,
	}); err != nil {
		return nil, nil, err
	}
	const block = 512
	padding := (block - size%block) % block
	return archive.Bytes(), make([]byte, padding+2*block), nil // two empty blocks end an archive
}

// composeManifest creates the config and the manifest of the image.
//
// Format: https://github.com/opencontainers/image-spec/blob/main/config.md and manifest.md in the same folder.
func (i *Image) composeManifest(arch string) error {
	layer := v1.Descriptor{
		MediaType: types.OCIUncompressedLayer, Size: i.layerSize(), Digest: v1.Hash{Algorithm: "sha256", Hex: i.layer},
	}
	config, err := i.addBlob(types.OCIConfigJSON, v1.ConfigFile{
		Architecture: arch, OS: "linux",
		Config: v1.Config{Entrypoint: []string{program}, User: "0"},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{layer.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := i.addBlob(types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{layer},
	})
	if err != nil {
		return err
	}
	i.Digest = manifest.Digest.String()
	for _, d := range []v1.Descriptor{manifest, config, layer} {
		i.Blobs = append(i.Blobs, desired.Blob{Digest: d.Digest.String(), Size: d.Size, MediaType: string(d.MediaType)})
	}
	return nil
}

// addBlob stores a value as JSON and returns its descriptor.
func (i *Image) addBlob(kind types.MediaType, value any) (v1.Descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	sum := sha256.Sum256(text)
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	i.texts[digest.Hex] = text
	return v1.Descriptor{MediaType: kind, Size: int64(len(text)), Digest: digest}, nil
}
