package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"kubeone/internal/desired"
)

// Files are the library's bundles as hosts have them, each under a name that says what is in it: bundles with the same
// parts have the same name, wherever their files are.
func (l *Library) Files() ([]desired.BundleFile, error) {
	var out []desired.BundleFile
	for _, b := range l.bundles {
		name, err := b.fileName()
		if err != nil {
			return nil, err
		}
		info, err := b.file.Stat()
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.path, err)
		}
		out = append(out, desired.BundleFile{Name: name, Size: info.Size()})
	}
	return out, nil
}

// File is the whole of the bundle that has that name.
func (l *Library) File(name string) (content *io.SectionReader, ok bool) {
	for _, b := range l.bundles {
		has, err := b.fileName()
		if err != nil || has != name {
			continue
		}
		info, err := b.file.Stat()
		if err != nil {
			return nil, false
		}
		return io.NewSectionReader(b.file, 0, info.Size()), true
	}
	return nil, false
}

// fileName is made of the index, which has the digests of all parts.
func (b *Bundle) fileName() (string, error) {
	index, err := json.Marshal(b.index)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(index)
	digest := hex.EncodeToString(sum[:6])
	return fmt.Sprintf("kubeone-%s-%s-%s.tar", b.index.KubernetesVersion, b.index.Arch, digest), nil
}
