// Package embedded contains addons of kubeone that the manifest switches on: their objects, images and workloads. It is
// pure.
package embedded

import (
	_ "embed" // the objects
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

var (
	//go:embed metrics-server.yaml
	metricsServer string
	//go:embed default-storage-class.yaml
	defaultStorageClass string
)

// row is one addon.
type row struct {
	name      string
	image     network.Image // "" if the release has the image anyway
	objects   string
	workloads []resources.Workload
}

func rows() []row {
	return []row{
		{
			name: desired.MetricsServerAddon,
			image: network.Image{
				Registry: "registry.k8s.io", Repository: "metrics-server/metrics-server", Tag: "v0.9.0",
			},
			objects: metricsServer,
			workloads: []resources.Workload{
				{Kind: "Deployment", Namespace: "kube-system", Name: "metrics-server"},
			},
		},
		{
			name: desired.NodeLocalDNSAddon, objects: nodeLocalDNS, // without an image of its own
			workloads: []resources.Workload{
				{Kind: "DaemonSet", Namespace: "kube-system", Name: "node-local-dns"},
			},
		},
		{
			name:    desired.StorageClassAddon,
			image:   network.Image{Registry: "docker.io", Repository: "rancher/local-path-provisioner", Tag: "v0.0.30"},
			objects: defaultStorageClass,
			workloads: []resources.Workload{
				{Kind: "Deployment", Namespace: "kube-system", Name: "local-path-provisioner"},
			},
		},
	}
}

func findRow(name string) (row, bool) {
	all := rows()
	n := slices.IndexFunc(all, func(r row) bool { return r.name == name })
	if n < 0 {
		return row{}, false
	}
	return all[n], true
}

// values fill the objects.
type values struct {
	Image string
	// Of NodeLocalDNS. CorefileSum replaces the pods when the configuration changes.
	Address, OwnerLabel, Corefile, CorefileSum string
	HealthPort                                 int
}

// Names returns the names of the addons with images.
func Names() []string {
	var out []string
	for _, r := range rows() {
		if r.image.Tag != "" {
			out = append(out, r.name)
		}
	}
	return out
}

// Images returns the official names of the images of the addons with these names. Other names have none.
func Images(names ...string) []network.Image {
	var out []network.Image
	for _, name := range names {
		if r, found := findRow(name); found && r.image.Tag != "" {
			out = append(out, r.image)
		}
	}
	return out
}

// Addon is the objects of an addon, and the workloads to wait for.
type Addon struct {
	Objects   []resources.Object
	Workloads []resources.Workload
}

// Render returns the addon with that name for a cluster.
func Render(name string, want desired.Cluster) (Addon, error) {
	r, found := findRow(name)
	if !found {
		return Addon{}, fmt.Errorf("unknown addon %s", name)
	}
	v := values{Image: nameImage(r.image, want.Registry.Overwrite)}
	if name == desired.NodeLocalDNSAddon {
		var err error
		if v, err = newCacheValues(want); err != nil {
			return Addon{}, err
		}
	}
	objects, err := resources.Render(r.objects, v)
	return Addon{objects, r.workloads}, err
}

// nameImage returns the name under which hosts have the image.
func nameImage(i network.Image, registry string) string {
	if registry == "" {
		registry = i.Registry
	}
	return strings.Trim(registry, "/") + "/" + i.Repository + ":" + i.Tag
}
