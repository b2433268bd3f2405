package operator

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// AgnhostImage is the name of the test workload's image in pods. Its program is /agnhost.
const AgnhostImage = "example.com/agnhost:" + components.AgnhostTag

// ImportAgnhost imports the test workload's image on hosts that have a container runtime, and skips others.
func (o *Operator) ImportAgnhost(ctx context.Context, hosts []*fleet.Host) error {
	archive := filepath.Join(o.Dir, "agnhost.tar")
	if err := archiveLayout(o.Agnhost, AgnhostImage, archive); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		group.Go(func() error {
			if _, err := host.Exec(ctx, "systemctl is-active --quiet containerd"); err != nil {
				return nil //nolint:nilerr // the condition under test
			}
			if err := host.CopyTo(ctx, archive, "/root/agnhost.tar"); err != nil {
				return err
			}
			_, err := host.Exec(ctx, "PATH=/opt/kubeone/bin:$PATH ctr -n k8s.io images import /root/agnhost.tar; "+
				"rc=$?; rm /root/agnhost.tar; exit $rc")
			return err
		})
	}
	return group.Wait()
}

// archiveLayout writes an OCI layout of one image as a tar that contains the image's name.
func archiveLayout(layout, name, archive string) error {
	index, err := namedIndex(layout, name)
	if err != nil {
		return err
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	add := func(path string, content []byte) error {
		if err := w.WriteHeader(&tar.Header{
			Name:     path,
			Mode:     0o644,
			Size:     int64(len(content)),
			Typeflag: tar.TypeReg,
		}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	blobs, err := filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*"))
	if err != nil {
		return err
	}
	if err := add("index.json", index); err != nil {
		return err
	}
	for _, path := range append(blobs, filepath.Join(layout, "oci-layout")) {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(layout, path)
		if err != nil {
			return err
		}
		if err := add(inside, content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, buffer.Bytes(), 0o600)
}

// namedIndex returns the layout's index with the image's name for containerd.
func namedIndex(layout, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return nil, err
	}
	var index map[string]any
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", layout, err)
	}
	manifests, _ := index["manifests"].([]any)
	if len(manifests) != 1 {
		return nil, fmt.Errorf("%s: %d images, want one", layout, len(manifests))
	}
	manifests[0].(map[string]any)["annotations"] = map[string]string{"io.containerd.image.name": name}
	return json.Marshal(index)
}
