package components

import (
	"context"
	"maps"
	"path/filepath"
)

// addImages writes the images of a set.
func (b *Builder) addImages(ctx context.Context, set *Set, want wishes, network networkPlugin) error {
	netfilter, err := netfilterTools(ctx)
	if err != nil {
		return err
	}
	shell, err := shellTools(ctx)
	if err != nil {
		return err
	}
	program := func(paths ...string) layerSpec {
		files := map[string]string{}
		for _, path := range paths {
			files[path] = set.Bin[filepath.Base(path)]
		}
		return layerSpec{Files: files}
	}
	plugin := func(names ...string) layerSpec {
		files := map[string]string{}
		for _, name := range names {
			files["opt/cni/bin/"+name] = set.Bin["cni/"+name]
		}
		return layerSpec{Files: files}
	}
	tag := "v" + set.KubernetesVersion
	specs := []imageSpec{
		{Name: "pause", Tag: want.PauseTag, Layers: []layerSpec{program("pause")}, Entrypoint: []string{"/pause"}},
		{Name: "etcd", Tag: want.EtcdTag,
			Layers: []layerSpec{program("usr/local/bin/etcd", "usr/local/bin/etcdctl", "usr/local/bin/etcdutl")}},
		{Name: "coredns/coredns", Tag: want.CoreDNSTag, Layers: []layerSpec{program("coredns")},
			Entrypoint: []string{"/coredns"}},
		{Name: "agnhost", Tag: AgnhostTag, Layers: []layerSpec{shell, program("agnhost")},
			Entrypoint: []string{"/agnhost"}},
	}
	if network.images != nil {
		parts := imageParts{netfilter: netfilter, shell: shell, program: program, plugin: plugin}
		if network.layer != nil {
			if parts.own, err = network.layer(ctx, b); err != nil {
				return err
			}
		}
		specs = append(specs, network.images(parts)...)
	}
	for _, name := range kubernetesImages {
		spec := imageSpec{Name: name, Tag: tag, Layers: []layerSpec{program("usr/local/bin/" + name)}}
		if name == "kube-proxy" {
			spec.Layers = append([]layerSpec{netfilter}, spec.Layers...)
		}
		specs = append(specs, spec)
	}
	for _, spec := range specs {
		dir, err := b.writeImage(ctx, spec)
		if err != nil {
			return err
		}
		set.Images = append(set.Images, Image{Name: spec.Name, Tag: spec.Tag, Layout: dir})
	}
	return nil
}

func mergeLayers(layers ...layerSpec) layerSpec {
	merged := layerSpec{Files: map[string]string{}, Links: map[string]string{}}
	for _, layer := range layers {
		maps.Copy(merged.Files, layer.Files)
		maps.Copy(merged.Links, layer.Links)
	}
	return merged
}
