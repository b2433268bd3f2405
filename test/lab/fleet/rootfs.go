package fleet

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// rootfs contains the lab's files for a plain Debian: the entry point, and drop-ins that let kubelet and containerd run
// inside a container. None of it is part of kubeone.
//
//go:embed all:rootfs
var rootfs embed.FS

// overlayMode returns the mode of an overlay file, which embedding loses.
func overlayMode(path string) fs.FileMode {
	switch {
	case strings.HasPrefix(path, "usr/local/sbin/"):
		return 0o755
	case strings.HasPrefix(path, "etc/sudoers.d/"):
		return 0o440
	}
	return 0o644
}

// writeOverlay copies the overlay's files over the file system in dir.
func writeOverlay(dir string) error {
	return eachOverlayFile(func(path string, content []byte) error {
		target := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return err
		}
		return os.Chmod(target, overlayMode(path))
	})
}

func eachOverlayFile(visit func(path string, content []byte) error) error {
	return fs.WalkDir(rootfs, "rootfs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := rootfs.ReadFile(path)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(path, "rootfs/"), content)
	})
}
