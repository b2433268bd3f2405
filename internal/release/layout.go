package release

import (
	"encoding/json"
	"fmt"

	"kubeone/internal/model/desired"
)

// OCILayout is the content of the file oci-layout, which marks a tar or directory as an OCI image layout.
const OCILayout = `{"imageLayoutVersion":"1.0.0"}`

// The annotations by which containerd's import names an image; both hold the whole name.
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

// ImageIndex returns index.json of an OCI image layout that has exactly these images under their names, and the blobs
// that the layout must have under blobs/sha256/, each once, in the images' order. A tar of OCILayout as oci-layout,
// index.json and the blobs is what "ctr images import" reads.
//
// The images must come from a bundle: those without Blobs are an error.
func ImageIndex(images []desired.Image, arch string) (indexJSON []byte, blobs []desired.Blob, err error) {
	index := ociIndex{
		SchemaVersion: 2,
		MediaType:     "application/vnd.oci.image.index.v1+json",
		Manifests:     []ociDescriptor{},
	}
	seen := map[string]bool{}
	for _, i := range images {
		if len(i.Blobs) == 0 || i.Blobs[0].Digest != i.Digest {
			return nil, nil, fmt.Errorf("image %s does not say what it consists of; it must come from a bundle", i.Name)
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
