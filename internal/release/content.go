package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"io"
	"kubeone/internal/model/desired"
	"net/http"
	"slices"
	"strings"
)

// content describes an entry to write to a bundle, and opens its data.
type content struct {
	Entry
	open func(context.Context) (io.ReadCloser, error)
}

// resolveContents lists the future content of a bundle. It fetches digests, sizes and image manifests, but no layers or
// binaries. An entry that several images share appears once, under the first image.
func (r *resolver) resolveContents(ctx context.Context) (desired.Artifacts, []content, error) {
	binaries := make([]*desired.Binary, len(r.files))
	images := make([]fetchedImage, len(r.images))
	err := r.forEach(ctx,
		func(ctx context.Context, n int) (err error) {
			binaries[n], err = r.resolveSize(ctx, r.files[n])
			return err
		},
		func(ctx context.Context, n int) (err error) {
			images[n], err = r.registries.getManifest(ctx, r.images[n])
			return err
		})
	if err != nil {
		return desired.Artifacts{}, nil, err
	}
	out := desired.Artifacts{KubernetesVersion: r.want.KubernetesVersion, Arch: r.want.Arch, Pushed: true}
	for n, img := range images {
		name := r.images[n].officialName()
		out.Images = append(out.Images, desired.Image{
			Name: name, Source: name, Roles: r.images[n].roles,
			Digest: img.blobs[0].Digest, Size: transferSize(img.blobs), Blobs: img.blobs, Workload: r.workloads[name],
		})
	}
	if err := r.checkClaims(binaries, out.Images); err != nil {
		return desired.Artifacts{}, nil, err
	}
	var all []content
	for n, b := range binaries {
		if b == nil {
			continue
		}
		all = append(all, r.fileContent(*b))
		b.URL = Source{}.fileURL(r.files[n].host, r.files[n].path)
		out.Binaries = append(out.Binaries, *b)
	}
	for n, img := range images {
		all = append(all, imageContent(out.Images[n].Name, img)...)
	}
	out.Published = r.found
	charts, err := r.chartContents()
	if err != nil {
		return desired.Artifacts{}, nil, err
	}
	for _, c := range r.charts {
		out.Charts = append(out.Charts, c.bundled())
	}
	return out, uniqueContents(slices.Concat(all, r.publishedContents(), charts)), nil
}

// resolveSize finds the digest and the size of a file. Like resolveBinary, it can return nil.
func (r *resolver) resolveSize(ctx context.Context, f file) (*desired.Binary, error) {
	b, err := r.resolveBinary(ctx, f)
	if err != nil || b == nil {
		return nil, err
	}
	b.Size, err = r.fetcher.fetchSize(ctx, b.URL)
	return b, err
}

func (r *resolver) fileContent(b desired.Binary) content {
	url := b.URL
	return content{
		Entry: Entry{Size: b.Size, SHA256: b.SHA256, Holds: b.Name + " " + b.Version},
		open: func(ctx context.Context) (io.ReadCloser, error) {
			body, _, err := r.fetcher.openURL(ctx, http.MethodGet, url)
			return body, err
		},
	}
}

// imageContent returns the manifest, config and layers of an image as bundle entries.
func imageContent(name string, img fetchedImage) []content {
	var out []content
	for n, b := range img.blobs {
		c := content{
			Entry: Entry{Size: b.Size, SHA256: strings.TrimPrefix(b.Digest, digestPrefix), Holds: "image " + name},
		}
		switch n {
		case 0:
			c.Holds, c.open = c.Holds+", manifest", inMemory(img.RawManifest)
		case 1:
			c.Holds, c.open = c.Holds+", config", inMemory(img.RawConfigFile)
		default:
			c.Holds, c.open = fmt.Sprintf("%s, layer %d", c.Holds, n-1), layerReader(img, b.Digest)
		}
		out = append(out, c)
	}
	return out
}

func inMemory(raw func() ([]byte, error)) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) {
		text, err := raw()
		return io.NopCloser(bytes.NewReader(text)), err
	}
}

func layerReader(img v1.Image, digest string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) {
		hash, err := v1.NewHash(digest)
		if err != nil {
			return nil, err
		}
		l, err := img.LayerByDigest(hash)
		if err != nil {
			return nil, err
		}
		return l.Compressed()
	}
}

// uniqueContents removes contents whose digest appeared earlier in the list.
func uniqueContents(all []content) []content {
	seen := map[string]bool{}
	var out []content
	for _, c := range all {
		if !seen[c.SHA256] {
			seen[c.SHA256] = true
			out = append(out, c)
		}
	}
	return out
}

// OCILayout is the content of the file oci-layout, which marks a tar or directory as an OCI image layout.
const OCILayout = `{"imageLayoutVersion":"1.0.0"}`

// The annotations with the name of an image, which "ctr images import" reads. Both contain the full name.
const (
	annotationContainerd = "io.containerd.image.name"
	annotationOCI        = "org.opencontainers.image.ref.name"
)

type ociIndex struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     []ociDescriptor `json:"manifests"`
}

type ociDescriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    ociPlatform       `json:"platform"`
}

type ociPlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// ImageIndex returns index.json for an OCI image layout with these images, and the blobs for the directory
// blobs/sha256. Each blob appears once, in the order of the images. "ctr images import" reads a tar that contains
// OCILayout as oci-layout, index.json, and the blobs.
//
// The images must come from a bundle: an image without Blobs is an error.
func ImageIndex(images []desired.Image, arch string) (indexJSON []byte, blobs []desired.Blob, err error) {
	index := ociIndex{
		SchemaVersion: 2,
		MediaType:     "application/vnd.oci.image.index.v1+json",
		Manifests:     []ociDescriptor{},
	}
	seen := map[string]bool{}
	for _, i := range images {
		if len(i.Blobs) == 0 || i.Blobs[0].Digest != i.Digest {
			return nil, nil, fmt.Errorf("image %s does not list its blobs; it must come from a bundle", i.Name)
		}
		index.Manifests = append(index.Manifests, ociDescriptor{
			MediaType: i.Blobs[0].MediaType, Digest: i.Digest, Size: i.Blobs[0].Size,
			Annotations: map[string]string{annotationContainerd: i.Name, annotationOCI: i.Name},
			Platform:    ociPlatform{Architecture: arch, OS: "linux"},
		})
		for _, b := range i.Blobs {
			if !seen[b.Digest] {
				seen[b.Digest] = true
				blobs = append(blobs, b)
			}
		}
	}
	indexJSON, err = json.Marshal(index)
	return indexJSON, blobs, err
}

// Files returns the names and sizes of the bundles as hosts store them. A name is derived from the content of the
// bundle, so bundles with the same parts have the same name. Hosts get whole bundles, so Files checks every part in
// them, with the same errors as For.
func (l *Library) Files() ([]desired.BundleFile, error) {
	if err := l.checkParts(); err != nil {
		return nil, err
	}
	var out []desired.BundleFile
	for _, b := range l.bundles {
		name, err := b.storedName()
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

// checkParts checks the digests of every part of every bundle.
func (l *Library) checkParts() error {
	check := l.claims
	for _, b := range l.bundles {
		claims, err := b.partClaims()
		if err != nil {
			return err
		}
		for _, c := range claims {
			if _, err := check.checkClaim(c, false); err != nil {
				return err
			}
		}
	}
	return check.untrustedError()
}

// partClaims returns the claims of the bundle about its parts. A claim has no Name if this program does not install the
// binary, because such a binary is not in lists of digests. The error is an *UnsupportedError if the bundle contains a
// release that this program does not install.
func (b *Bundle) partClaims() ([]Claim, error) {
	has := b.index.Artifacts
	want := Want{KubernetesVersion: has.KubernetesVersion, Arch: has.Arch, CNI: b.index.CNI, KubeProxy: true}
	versions, err := want.matchingVersions()
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", b.path, err)
	}
	source := "bundle " + b.path
	files := want.releaseFiles(versions)
	var out []Claim
	for _, have := range has.Binaries {
		c := Claim{What: have.Name + " " + have.Version, SHA256: have.SHA256, Source: source}
		if n := slices.IndexFunc(files, func(f file) bool { return f.name == have.Name }); n >= 0 {
			c = files[n].atVersion(have.Version).newClaim(have.SHA256, source)
		}
		out = append(out, c)
	}
	for _, have := range has.Published {
		out = append(out, publishedClaim(have, source))
	}
	for _, have := range has.Charts {
		out = append(out, chartClaim(have, source))
	}
	for _, have := range has.Images {
		out = append(out, newImageClaim(have.Name, has.Arch, have.Digest, source))
	}
	return out, nil
}

// File returns the content of the bundle that hosts store under this name. ok is false if there is none.
func (l *Library) File(name string) (content *io.SectionReader, ok bool) {
	for _, b := range l.bundles {
		has, err := b.storedName()
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

// storedName returns the name of the bundle on hosts. It is derived from the index, which contains the digests of all
// parts.
func (b *Bundle) storedName() (string, error) {
	index, err := json.Marshal(b.index)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(index)
	digest := hex.EncodeToString(sum[:6])
	return fmt.Sprintf("kubeone-%s-%s-%s.tar", b.index.KubernetesVersion, b.index.Arch, digest), nil
}
