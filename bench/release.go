package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/internal/addons"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// unpacked is a folder with the files of a bundle, for an operator without kubeone.
type unpacked struct {
	paths []string // files to copy to hosts
	pause string   // name of the pause image
}

// releaseFolder empties the folder and writes what byhand.sh needs. That is the bundle's binaries under plain names,
// the network plugin's manifest, and for each role an archive of images and a file of checksums.
func releaseFolder(folder, bundlePath string, want desired.Cluster) (unpacked, error) {
	u := unpacked{}
	bundle, err := release.Open(bundlePath)
	if err != nil {
		return u, err
	}
	defer func() { _ = bundle.Close() }()
	if err := os.RemoveAll(folder); err != nil {
		return u, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return u, err
	}
	f := &folderWriter{folder: folder, bundle: bundle, content: bundle.Index().Artifacts, sums: map[string]string{}}
	f.writeBinaries()
	for _, role := range []desired.Role{desired.ControlPlane, desired.Worker} {
		f.writeImages(role)
		f.writeChecksums(role)
	}
	f.writeNetwork(want)
	for _, i := range f.content.Images {
		if strings.Contains(i.Name, "/pause:") {
			u.pause = i.Name
		}
	}
	for name := range f.sums {
		u.paths = append(u.paths, filepath.Join(folder, name))
	}
	return u, f.err
}

// folderWriter writes the folder's files. It does nothing after its first error.
type folderWriter struct {
	folder  string
	bundle  *release.Bundle
	content desired.Artifacts
	sums    map[string]string // sha256 by file name
	err     error
}

// writeFile creates a file with the content from fill, and records its checksum.
func (f *folderWriter) writeFile(name string, fill func(io.Writer) error) {
	if f.err != nil {
		return
	}
	file, err := os.Create(filepath.Join(f.folder, name))
	if err != nil {
		f.err = err
		return
	}
	sum := sha256.New()
	err = fill(io.MultiWriter(file, sum))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		f.err = fmt.Errorf("write %s: %w", name, err)
	}
	f.sums[name] = hex.EncodeToString(sum.Sum(nil))
}

func (f *folderWriter) copyBlob(w io.Writer, digest string) error {
	content, ok := f.bundle.Blob(digest)
	if !ok {
		return fmt.Errorf("%s is not in the bundle", digest)
	}
	_, err := io.Copy(w, content)
	return err
}

func binaryFile(b desired.Binary) string {
	if b.Archive {
		return b.Name + ".tar.gz"
	}
	return b.Name
}

func (f *folderWriter) writeBinaries() {
	for _, b := range f.content.Binaries {
		f.writeFile(binaryFile(b), func(w io.Writer) error { return f.copyBlob(w, b.SHA256) })
	}
}

func imagesFile(role desired.Role) string { return "images-" + string(role) + ".tar" }

// writeImages writes an archive for "ctr images import".
func (f *folderWriter) writeImages(role desired.Role) {
	f.writeFile(imagesFile(role), func(w io.Writer) error {
		index, blobs, err := release.ImageIndex(f.content.ImagesFor(role), f.content.Arch)
		if err != nil {
			return err
		}
		archive := tar.NewWriter(w)
		for name, text := range map[string]string{"oci-layout": release.OCILayout, "index.json": string(index)} {
			if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}); err != nil {
				return err
			}
			if _, err := io.WriteString(archive, text); err != nil {
				return err
			}
		}
		for _, blob := range blobs {
			name := "blobs/sha256/" + strings.TrimPrefix(blob.Digest, "sha256:")
			if err := archive.WriteHeader(&tar.Header{Name: name, Size: blob.Size, Mode: 0o644}); err != nil {
				return err
			}
			if err := f.copyBlob(archive, blob.Digest); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

// writeChecksums writes the checksums of a role's files in the format of sha256sum. Workers need no kubectl.
func (f *folderWriter) writeChecksums(role desired.Role) {
	if f.err != nil {
		return
	}
	var text strings.Builder
	add := func(name string) { fmt.Fprintf(&text, "%s  %s\n", f.sums[name], name) }
	for _, b := range f.content.Binaries {
		if role == desired.ControlPlane || b.Name != desired.BinaryKubectl {
			add(binaryFile(b))
		}
	}
	add(imagesFile(role))
	f.err = os.WriteFile(filepath.Join(f.folder, "SHA256SUMS-"+string(role)), []byte(text.String()), 0o644)
}

// writeNetwork writes flannel's manifest as kubeone applies it, plus the init container from flannel's own manifest.
// Without kubeone, that container configures the network plugin on the hosts.
func (f *folderWriter) writeNetwork(want desired.Cluster) {
	if f.err != nil {
		return
	}
	want.Artifacts = map[string]desired.Artifacts{f.content.Arch: f.content}
	rendered, err := addons.Render(want)
	if err != nil {
		f.err = err
		return
	}
	var text strings.Builder
	for _, addon := range rendered {
		for _, o := range addon.Objects {
			if o.GetKind() == "DaemonSet" {
				installsCNI(o.Object)
			}
			document, err := yaml.Marshal(o.Object)
			if err != nil {
				f.err = err
				return
			}
			text.WriteString("---\n" + string(document))
		}
	}
	f.err = os.WriteFile(filepath.Join(f.folder, "flannel.yaml"), []byte(text.String()), 0o644)
}

// installsCNI adds the init container that copies the plugin's configuration to the host.
func installsCNI(daemonSet map[string]any) {
	pod := daemonSet["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	image := pod["containers"].([]any)[0].(map[string]any)["image"]
	pod["initContainers"] = []any{map[string]any{
		"name": "install-cni", "image": image, "command": []any{"cp"},
		"args": []any{"-f", "/etc/kube-flannel/cni-conf.json", "/etc/cni/net.d/10-flannel.conflist"},
		"volumeMounts": []any{
			map[string]any{"name": "cni", "mountPath": "/etc/cni/net.d"},
			map[string]any{"name": "config", "mountPath": "/etc/kube-flannel/"},
		},
	}}
	pod["volumes"] = append(pod["volumes"].([]any), map[string]any{
		"name": "cni", "hostPath": map[string]any{"path": "/etc/cni/net.d", "type": "DirectoryOrCreate"},
	})
}
