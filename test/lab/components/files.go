package components

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// archiveFormat is part of every archive's digest: raise it when archives are written in another way.
const archiveFormat = "tgz-1 v1"

// addFiles adds the downloads of a set, writing the archives among them.
func (b *Builder) addFiles(ctx context.Context, set *Set) error {
	arch := runtime.GOARCH
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		set.Files = append(set.Files,
			File{"dl.k8s.io/release/v" + set.KubernetesVersion + "/bin/linux/" + arch + "/" + name, set.Bin[name]})
	}
	set.Files = append(set.Files,
		File{"github.com/opencontainers/runc/releases/download/" + RuncVersion + "/runc." + arch, set.Bin["runc"]})
	containerdVersion := ContainerdVersion(set.KubernetesVersion)
	containerd := map[string]string{}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		containerd["bin/"+name] = set.Bin[name]
	}
	plugins := map[string]string{}
	for _, names := range cniPlugins {
		for _, name := range names {
			plugins[name] = set.Bin["cni/"+name]
		}
	}
	archives := []struct {
		url   string
		files map[string]string
	}{
		{
			"github.com/containerd/containerd/releases/download/" + containerdVersion + "/containerd-" +
				strings.TrimPrefix(containerdVersion, "v") + "-linux-" + arch + ".tar.gz", containerd,
		},
		{
			"github.com/containernetworking/plugins/releases/download/" + CNIPluginsVersion + "/cni-plugins-linux-" +
				arch + "-" + CNIPluginsVersion + ".tgz", plugins,
		},
		{"github.com/flannel-io/cni-plugin/releases/download/" + FlannelCNIVersion + "/cni-plugin-flannel-linux-" +
			arch + "-" + FlannelCNIVersion + ".tgz",
			map[string]string{"flannel-" + arch: set.Bin["cni/flannel"]}},
	}
	for _, archive := range archives {
		path, err := b.archive(ctx, filepath.Base(archive.url), archive.files)
		if err != nil {
			return err
		}
		set.Files = append(set.Files, File{archive.url, path})
	}
	return nil
}

// archive writes the files as a compressed archive of that name into the cache.
func (b *Builder) archive(ctx context.Context, name string, files map[string]string) (string, error) {
	layer := layerSpec{Files: files}
	dir, err := b.Cache.Entry(ctx, "archives", digestOf(archiveFormat, name, layer), func(dir string) error {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer file.Close()
		compressed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if err := writeTar(compressed, layer); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return err
		}
		return file.Close()
	})
	return filepath.Join(dir, name), err
}
