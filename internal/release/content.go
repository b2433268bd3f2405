package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubeone/internal/model/desired"
)

// content is one entry of a bundle to be, and how to fetch it.
type content struct {
	Entry
	open func(context.Context) (io.ReadCloser, error)
}

// contents learns all that a bundle will consist of, without fetching the bulk of it. Entries that several images share
// appear once, where the first image has them.
func (r *resolver) contents(ctx context.Context) (desired.Artifacts, []content, error) {
	binaries := make([]*desired.Binary, len(r.files))
	images := make([]fetched, len(r.images))
	err := r.each(ctx,
		func(ctx context.Context, n int) (err error) { binaries[n], err = r.sized(ctx, r.files[n]); return err },
		func(ctx context.Context, n int) (err error) {
			images[n], err = r.registries.get(ctx, r.images[n])
			return err
		})
	if err != nil {
		return desired.Artifacts{}, nil, err
	}
	out := desired.Artifacts{KubernetesVersion: r.want.KubernetesVersion, Arch: r.want.Arch, Pushed: true}
	for n, img := range images {
		name := r.images[n].official()
		out.Images = append(out.Images, desired.Image{
			Name: name, Source: name, Roles: r.images[n].roles,
			Digest: img.blobs[0].Digest, Size: transferSize(img.blobs), Blobs: img.blobs,
		})
	}
	if err := r.vouch(binaries, out.Images); err != nil {
		return desired.Artifacts{}, nil, err
	}
	var all []content
	for n, b := range binaries {
		if b == nil {
			continue
		}
		all = append(all, r.fileContent(*b))
		b.URL = Source{}.url(r.files[n].host, r.files[n].path)
		out.Binaries = append(out.Binaries, *b)
	}
	for n, img := range images {
		all = append(all, imageContent(out.Images[n].Name, img)...)
	}
	return out, unique(all), nil
}

// sized finds digest and size of a file.
func (r *resolver) sized(ctx context.Context, f file) (*desired.Binary, error) {
	b, err := r.binary(ctx, f)
	if err != nil || b == nil {
		return nil, err
	}
	b.Size, err = r.web.size(ctx, b.URL)
	return b, err
}

func (r *resolver) fileContent(b desired.Binary) content {
	url := b.URL
	return content{
		Entry: Entry{Size: b.Size, SHA256: b.SHA256, Holds: b.Name + " " + b.Version},
		open: func(ctx context.Context) (io.ReadCloser, error) {
			body, _, err := r.web.open(ctx, http.MethodGet, url)
			return body, err
		},
	}
}

// imageContent is manifest, config and layers of an image.
func imageContent(name string, img fetched) []content {
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
			c.Holds, c.open = fmt.Sprintf("%s, layer %d", c.Holds, n-1), layer(img, b.Digest)
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

func layer(img v1.Image, digest string) func(context.Context) (io.ReadCloser, error) {
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

// unique keeps the first of contents with equal digests.
func unique(all []content) []content {
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
