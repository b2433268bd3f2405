package release

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubeone/internal/model/desired"
)

// registries reads images for one architecture. Credentials are those of the operator's container tools.
type registries struct {
	secure, insecure *remote.Puller
	want             Want
	retry            func(context.Context, func() error) error
}

func newRegistries(src Source, want Want) (*registries, error) {
	out := &registries{
		want:  want,
		retry: func(ctx context.Context, try func() error) error { return tryAgain(ctx, src.pause(), try) },
	}
	var err error
	if out.secure, err = newPuller(secure{src.transport(false)}, want.Arch); err != nil {
		return nil, err
	}
	if want.Insecure {
		out.insecure, err = newPuller(src.transport(true), want.Arch)
	}
	return out, err
}

func newPuller(through http.RoundTripper, arch string) (*remote.Puller, error) {
	puller, err := remote.NewPuller(
		remote.WithTransport(through),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithUserAgent("kubeone"),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), // retries are made here
	)
	if err != nil {
		return nil, fmt.Errorf("read container registries: %w", err)
	}
	return puller, nil
}

// fetched is an image of one platform whose manifest has been read.
type fetched struct {
	v1.Image
	blobs []desired.Blob // manifest, config, layers
}

// get reads the manifest of the image for the wanted architecture, following an index.
func (r *registries) get(ctx context.Context, i image) (fetched, error) {
	puller, options := r.secure, []name.Option(nil)
	if r.want.insecure(i) {
		puller, options = r.insecure, []name.Option{name.Insecure}
	}
	ref, err := name.ParseReference(r.want.location(i), options...)
	if err != nil {
		return fetched{}, fmt.Errorf("image name %q: %w", r.want.location(i), err)
	}
	var out fetched
	err = r.retry(ctx, func() error {
		descriptor, err := puller.Get(ctx, ref)
		if err != nil {
			return err
		}
		img, err := descriptor.Image()
		if err != nil {
			return err
		}
		if !descriptor.MediaType.IsIndex() {
			if err := r.checkPlatform(img); err != nil {
				return err
			}
		}
		out.Image = img
		out.blobs, err = blobsOf(img)
		return err
	})
	return out, err
}

// checkPlatform looks into the config of an image that is published for one platform only.
func (r *registries) checkPlatform(img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	if config.OS != "linux" || config.Architecture != r.want.Arch {
		return fmt.Errorf("the image is for %s/%s only, wanted is linux/%s", config.OS, config.Architecture,
			r.want.Arch)
	}
	return nil
}

// blobsOf lists what an image consists of: manifest, config, layers.
func blobsOf(img v1.Image) ([]desired.Blob, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	size, err := img.Size()
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	return partsOf(manifest, digest.String(), size), nil
}

// partsOf lists a manifest, whose own digest and size are given, and what it names: config, layers.
func partsOf(manifest *v1.Manifest, digest string, size int64) []desired.Blob {
	blobs := []desired.Blob{
		{Digest: digest, Size: size, MediaType: string(manifest.MediaType)},
		{Digest: manifest.Config.Digest.String(), Size: manifest.Config.Size,
			MediaType: string(manifest.Config.MediaType)},
	}
	for _, l := range manifest.Layers {
		blobs = append(blobs, desired.Blob{Digest: l.Digest.String(), Size: l.Size, MediaType: string(l.MediaType)})
	}
	return blobs
}

// transferSize is the bytes of config and layers.
func transferSize(blobs []desired.Blob) int64 {
	var sum int64
	for _, b := range blobs[1:] {
		sum += b.Size
	}
	return sum
}
