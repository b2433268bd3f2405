package components

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"slices"
)

// archiveFormat is part of every archive's digest. Raise it when the format of archives changes.
const archiveFormat = "tgz-1 v1"

// addFiles adds the downloads of a set, and writes the archives among them.
func (b *Builder) addFiles(ctx context.Context, set *Set, want wishes, plugin networkPlugin) error {
	downloads := slices.Concat(kubernetesRecipe(set.KubernetesVersion).Downloads, runcRecipe().Downloads,
		containerdRecipe(ContainerdVersion(set.KubernetesVersion)).Downloads, etcdRecipe(want.EtcdVersion).Downloads,
		coreDNSRecipe(want.CoreDNSBuilt).Downloads, downloadsOf(plugin.recipes))
	for _, file := range downloads {
		if err := b.addFile(ctx, set, file, ""); err != nil {
			return err
		}
	}
	for _, file := range slices.Concat(cniRecipe().Downloads, downloadsOf(plugin.cni)) {
		if err := b.addFile(ctx, set, file, "cni/"); err != nil {
			return err
		}
	}
	if err := b.addManifests(ctx, set, plugin); err != nil || plugin.files == nil {
		return err
	}
	published, err := plugin.files(ctx, b)
	set.Files = append(set.Files, published...)
	return err
}

// addFile adds a download to a set. Its programs come from set.Bin, under their names with prefix.
func (b *Builder) addFile(ctx context.Context, set *Set, file Download, prefix string) error {
	members := map[string]string{}
	for program, member := range file.Members {
		if member == "" {
			set.Files = append(set.Files, File{file.URL, set.Bin[prefix+program]})
			return nil
		}
		members[member] = set.Bin[prefix+program]
	}
	local, err := b.writeArchive(ctx, filepath.Base(file.URL), members)
	if err != nil {
		return err
	}
	set.Files = append(set.Files, File{file.URL, local})
	return nil
}

// writeArchive writes the files as a compressed archive into the cache.
func (b *Builder) writeArchive(ctx context.Context, name string, files map[string]string) (string, error) {
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
