package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubeone/internal/model/desired"
	"kubeone/internal/text/pattern"
)

// What an index may say of names and versions. Hosts use both in paths, and read them from lists.
var (
	partName    = pattern.Lazy(`^[a-z][a-z0-9-]*$`)
	partVersion = pattern.Lazy(`^[0-9]+(\.[0-9]+)+(-[A-Za-z0-9.-]+)?$`)
)

// check reports whether the index is consistent. It says nothing but what the index of a bundle can say, each digest is
// one, and the entries are those that artifacts name.
func (i Index) check() error {
	if err := i.checkRelease(); err != nil {
		return err
	}
	if len(i.Entries) > maxEntries || len(i.Artifacts.Images) > maxImages {
		return fmt.Errorf("%d entries and %d images", len(i.Entries), len(i.Artifacts.Images))
	}
	sizes := map[string]int64{}
	for _, e := range i.Entries {
		if _, twice := sizes[e.SHA256]; twice || !isSHA256(e.SHA256) || e.Size < 0 || e.Size >= maxEntrySize {
			return fmt.Errorf("entry %.80q of %d bytes", e.SHA256, e.Size)
		}
		if !isPrintable(e.Holds) {
			return fmt.Errorf("entry %s holds %.80q", e.SHA256, e.Holds)
		}
		sizes[e.SHA256] = e.Size
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
	for _, e := range i.Entries {
		if !named[e.SHA256] {
			return fmt.Errorf("no artifact has entry %s", e.SHA256)
		}
	}
	return nil
}

// checkRelease checks what the index says of the bundle as a whole.
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

// isPrintable reports whether a text for people is one line without control characters.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

// checkManifests compares the parts that the index gives each image with those that its manifest names.
func (b *Bundle) checkManifests() error {
	for _, img := range b.index.Artifacts.Images {
		blobs, err := b.manifestBlobs(img.Digest)
		if err != nil {
			return err
		}
		switch {
		case blobs == nil:
			return b.altered("manifest of image " + img.Name)
		case !slices.Equal(blobs, img.Blobs) || img.Size != transferSize(blobs):
			return b.altered(fmt.Sprintf("%s (image %s has other parts than its manifest names)", indexName, img.Name))
		}
	}
	return nil
}

// manifestBlobs returns the parts of an image as its manifest names them, or nil if the content with that digest is
// another one, or not an image's manifest.
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
	return partsOf(manifest, digest, int64(len(text))), nil
}
