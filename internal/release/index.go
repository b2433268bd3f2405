package release

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"io"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/pattern"
	"slices"
	"strings"
)

// The allowed names and versions in an index. Hosts use both in paths and read them from lists.
var (
	partName    = pattern.Lazy(`^[a-z][a-z0-9-]*$`)
	partVersion = pattern.Lazy(`^[0-9]+(\.[0-9]+)+(-[A-Za-z0-9.-]+)?$`)
)

// checkConsistency checks that the index is valid: every value is allowed, digests are well formed, and the entries are
// exactly those that the artifacts refer to.
func (i Index) checkConsistency() error {
	if err := i.checkRelease(); err != nil {
		return err
	}
	sizes, err := i.checkEntries()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, b := range i.Artifacts.Binaries {
		if err := checkBinary(b, sizes); err != nil {
			return err
		}
		named[b.SHA256] = true
	}
	for _, img := range i.Artifacts.Images {
		if err := i.checkImage(img, sizes); err != nil {
			return err
		}
		for _, blob := range img.Blobs {
			named[strings.TrimPrefix(blob.Digest, digestPrefix)] = true
		}
	}
	for _, p := range i.Artifacts.Published {
		if err := checkPublished(p, sizes); err != nil {
			return err
		}
		named[p.SHA256] = true
	}
	for _, c := range i.Artifacts.Charts {
		if err := checkChart(c, sizes); err != nil {
			return err
		}
		named[c.SHA256] = true
	}
	for _, e := range i.Entries {
		if !named[e.SHA256] {
			return fmt.Errorf("no artifact has entry %s", e.SHA256)
		}
	}
	return nil
}

// checkEntries checks the entries, and returns their sizes by digest.
func (i Index) checkEntries() (map[string]int64, error) {
	if a := i.Artifacts; len(i.Entries) > maxEntries || len(a.Images) > maxImages || len(a.Charts) > maxCharts {
		return nil, fmt.Errorf("%d entries, %d images and %d charts", len(i.Entries), len(a.Images), len(a.Charts))
	}
	sizes := map[string]int64{}
	for _, e := range i.Entries {
		if _, twice := sizes[e.SHA256]; twice || !isSHA256(e.SHA256) || e.Size < 0 || e.Size >= maxEntrySize {
			return nil, fmt.Errorf("entry %.80q of %d bytes", e.SHA256, e.Size)
		}
		if !isPrintable(e.Holds) {
			return nil, fmt.Errorf("entry %s holds %.80q", e.SHA256, e.Holds)
		}
		sizes[e.SHA256] = e.Size
	}
	return sizes, nil
}

// checkRelease checks the fields of the index that describe the whole bundle.
func (i Index) checkRelease() error {
	switch {
	case !partVersion().MatchString(i.KubernetesVersion):
		return fmt.Errorf("version %.80q of Kubernetes", i.KubernetesVersion)
	case !slices.Contains(Architectures(), i.Arch):
		return fmt.Errorf("architecture %.80q", i.Arch)
	case i.Artifacts.KubernetesVersion != i.KubernetesVersion || i.Artifacts.Arch != i.Arch:
		return errors.New("artifacts of another release")
	case i.CNI != "" && !partName().MatchString(i.CNI):
		return fmt.Errorf("network plugin %.80q", i.CNI)
	case !isPrintable(i.CreatedBy):
		return fmt.Errorf("created by %.80q", i.CreatedBy)
	}
	return nil
}

func checkBinary(b desired.Binary, sizes map[string]int64) error {
	location, https := strings.CutPrefix(b.URL, "https://")
	switch size, ok := sizes[b.SHA256]; {
	case !partName().MatchString(b.Name):
		return fmt.Errorf("binary %.80q", b.Name)
	case !partVersion().MatchString(b.Version):
		return fmt.Errorf("version %.80q of %s", b.Version, b.Name)
	case !https || !fileName().MatchString(location):
		return fmt.Errorf("location %.80q of %s", b.URL, b.Name)
	case !ok || size != b.Size:
		return fmt.Errorf("no entry for %s", b.Name)
	}
	return nil
}

func (i Index) checkImage(img desired.Image, sizes map[string]int64) error {
	if !imageName().MatchString(img.Name+" linux/"+i.Arch) || img.Source != img.Name {
		return fmt.Errorf("image %.80q from %.80q", img.Name, img.Source)
	}
	for _, r := range img.Roles {
		if r != desired.ControlPlane && r != desired.Worker {
			return fmt.Errorf("role %.80q of image %s", r, img.Name)
		}
	}
	if len(img.Blobs) < 2 || img.Blobs[0].Digest != img.Digest || img.Blobs[0].Size > maxManifest {
		return fmt.Errorf("image %s without its manifest", img.Name)
	}
	for _, blob := range img.Blobs {
		sum, ok := strings.CutPrefix(blob.Digest, digestPrefix)
		if size, have := sizes[sum]; !ok || !have || size != blob.Size {
			return fmt.Errorf("no entry for a part of image %s", img.Name)
		}
	}
	return nil
}

// isPrintable reports whether a text is a single line without control characters.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

// checkManifests checks that the blobs of each image in the index are those in its manifest.
func (b *Bundle) checkManifests() error {
	for _, img := range b.index.Artifacts.Images {
		blobs, err := b.manifestBlobs(img.Digest)
		if err != nil {
			return err
		}
		switch {
		case blobs == nil:
			return b.alteredError("manifest of image " + img.Name)
		case !slices.Equal(blobs, img.Blobs) || img.Size != transferSize(blobs):
			return b.alteredError(fmt.Sprintf("%s (the parts of image %s differ from its manifest)", indexName,
				img.Name))
		}
	}
	return nil
}

// manifestBlobs returns the blobs of an image according to its manifest. It returns nil if the bundle has no content
// with this digest, or if that content is altered or not an image manifest.
func (b *Bundle) manifestBlobs(digest string) ([]desired.Blob, error) {
	content, ok := b.Blob(digest)
	if !ok {
		return nil, nil
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.path, err)
	}
	sum := sha256.Sum256(text)
	if digestPrefix+hex.EncodeToString(sum[:]) != digest {
		return nil, nil
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, nil //nolint:nilerr // documented: it is not a manifest
	}
	return listBlobs(manifest, digest, int64(len(text))), nil
}

// FormatVersion is the version of the bundle format. A bundle is a POSIX tar (ustar, so that each header is one block
// of 512 bytes) with these entries:
//
//	bundle.json          an Index
//	blobs/sha256/<hex>   the entries of the Index in its order: the files of binaries, then the manifests, configs and
//	                     layers of images
//	bundle.sha256        the digest of bundle.json, as sha256sum writes it
//
// Two zero blocks follow. bundle.json contains the digests of all other entries, and the length of the file follows
// from it. A truncated file is therefore found without reading its content.
const FormatVersion = 1

// The names of entries, and limits that are far above the values in real bundles.
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
	maxCharts    = 1000
	maxManifest  = 4 << 20
	maxEntrySize = 1 << 33 // the limit of a ustar header
)

// Index describes a bundle.
type Index struct {
	Format            int               `json:"format"` // FormatVersion
	KubernetesVersion string            `json:"kubernetesVersion"`
	Arch              string            `json:"arch"`
	CNI               string            `json:"cni"`
	KubeProxy         bool              `json:"kubeProxy"`
	CreatedBy         string            `json:"createdBy"` // the program and its version
	Artifacts         desired.Artifacts `json:"artifacts"` // with official names and locations
	Entries           []Entry           `json:"entries"`
}

// Entry is one content-addressed entry of a bundle.
type Entry struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
	Holds  string `json:"holds"`  // description for messages
}

// Name returns the name of the entry in the tar.
func (e Entry) Name() string { return blobPrefix + e.SHA256 }

// Size returns the total size of the entries in bytes.
func (i Index) Size() int64 {
	var sum int64
	for _, e := range i.Entries {
		sum += e.Size
	}
	return sum
}

// paddedSize returns the size of content in a tar, including the padding to full blocks.
func paddedSize(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// fileSize returns the size of the bundle file in bytes.
func (i Index) fileSize(indexSize int64) int64 {
	total := blockSize + paddedSize(indexSize)
	for _, e := range i.Entries {
		total += blockSize + paddedSize(e.Size)
	}
	return total + blockSize + paddedSize(int64(len(trailerText(nil)))) + endSize
}

// trailerText returns the content of the last entry.
func trailerText(indexJSON []byte) string {
	sum := sha256.Sum256(indexJSON)
	return hex.EncodeToString(sum[:]) + "  " + indexName + "\n"
}

// tarHeader returns the header block of an entry. It depends only on the name and size.
func tarHeader(name string, size int64) ([]byte, error) {
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

// writeStream writes an entry with exactly size bytes from content.
func writeStream(w io.Writer, name string, size int64, content io.Reader) error {
	head, err := tarHeader(name, size)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if _, err := io.CopyN(w, content, size); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = w.Write(make([]byte, paddedSize(size)-size))
	return err
}

func writeEntry(w io.Writer, name string, content []byte) error {
	return writeStream(w, name, int64(len(content)), bytes.NewReader(content))
}
