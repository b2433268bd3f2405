package components

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// blobs serves layers and configurations from the images' layouts.
type blobs map[v1.Hash]layout.Path

// Get opens a blob of any repository.
func (b blobs) Get(_ context.Context, _ string, hash v1.Hash) (io.ReadCloser, error) {
	path, ok := b[hash]
	if !ok {
		return nil, registry.ErrNotFound
	}
	return path.Blob(hash)
}

// newRegistry returns a registry with these images. A PUT would change it, but Mirror passes none.
func newRegistry(images []Image) (http.Handler, error) {
	store := blobs{}
	handler := registry.New(registry.WithBlobHandler(store), registry.Logger(log.New(io.Discard, "", 0)))
	for _, image := range images {
		if err := addImage(handler, store, image); err != nil {
			return nil, fmt.Errorf("registry: image %s: %w", image.Ref(), err)
		}
	}
	return handler, nil
}

func addImage(handler http.Handler, store blobs, image Image) error {
	path, err := layout.FromPath(image.Layout)
	if err != nil {
		return err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return err
	}
	contents, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(contents.Manifests) != 1 {
		return fmt.Errorf("layout %s holds %d images", image.Layout, len(contents.Manifests))
	}
	descriptor := contents.Manifests[0]
	stored, err := path.Image(descriptor.Digest)
	if err != nil {
		return err
	}
	manifest, err := stored.Manifest()
	if err != nil {
		return err
	}
	store[manifest.Config.Digest] = path
	for _, layer := range manifest.Layers {
		store[layer.Digest] = path
	}
	raw, err := stored.RawManifest()
	if err != nil {
		return err
	}
	request := httptest.NewRequest(http.MethodPut, "/v2/"+image.Name+"/manifests/"+image.Tag, bytes.NewReader(raw))
	request.Header.Set("Content-Type", string(descriptor.MediaType))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusCreated {
		return fmt.Errorf("put its manifest: %d %s", answer.Code, answer.Body)
	}
	return nil
}
