package authority

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"kubeone/internal/model/observed"
)

const (
	maxFiles     = 64
	maxFileBytes = 256 << 10 // bytes
)

// ReadArchive returns the files in a small tar of keys from a host, by name.
func ReadArchive(text []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errors.New("the output of the host is not a tar archive")
		}
		if len(out) == maxFiles || header.Size > maxFileBytes {
			return nil, errors.New("the archive from the host is too large")
		}
		if out[header.Name], err = io.ReadAll(io.LimitReader(r, maxFileBytes)); err != nil {
			return nil, errors.New("the archive from the host is truncated")
		}
	}
}

// WriteArchive returns such a tar. The files are readable only by root, and sorted by name.
func WriteArchive(files map[string][]byte, now time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{
			Name: name, Mode: 0o600, Size: int64(len(files[name])), ModTime: now.Truncate(time.Second),
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// Agree changes files, given by name in /etc/kubernetes/pki, so that the first certificate or public key of each
// authority matches its private key. It may not match if an exchange of keys was interrupted after one of the two
// files. Files that cannot be parsed are not changed, because they belong to another program.
func Agree(files map[string][]byte) {
	for _, name := range observed.Authorities() {
		at := FilesOf(name)
		if _, err := ParsePair(files[at.Public], files[at.Key]); err == nil {
			continue
		}
		public, err := ParsePublic(files[at.Public])
		if err != nil {
			continue
		}
		if own, err := Own(public, files[at.Key]); err == nil {
			files[at.Public] = own.With(public).Text()
		}
	}
}
