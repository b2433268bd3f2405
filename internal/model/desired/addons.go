package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// The addons of kubeone that a manifest can switch on.
const (
	MetricsServerAddon = "metrics-server"
	NodeLocalDNSAddon  = "nodelocaldns"
	StorageClassAddon  = "default-storage-class" // a custom addon, except that kubeone contains its objects
)

// NodeLocalDNSAddress is the address of the DNS cache on every host. It is a link-local address on the interface lo.
const NodeLocalDNSAddress = "169.254.20.10"

// DefaultAddons returns the names of the addons that new clusters get unless the manifest says otherwise.
func DefaultAddons() []string { return []string{MetricsServerAddon, NodeLocalDNSAddon} }

// DefaultAddon returns whether the manifest wants one of DefaultAddons; nil if it does not say. The DNS cache needs an
// IPv4 service subnet.
func (c Cluster) DefaultAddon(name string) *bool {
	if slices.Contains(c.ReplacedAddons, name) {
		return nil
	}
	switch name {
	case MetricsServerAddon:
		return c.MetricsServer
	case NodeLocalDNSAddon:
		if c.Network.DNSServiceAddress() == "" {
			return new(false)
		}
		return c.NodeLocalDNS
	}
	return nil
}

// WithDefaultAddon returns the cluster with one of DefaultAddons.
func (c Cluster) WithDefaultAddon(name string) Cluster {
	switch name {
	case MetricsServerAddon:
		c.MetricsServer = new(true)
	case NodeLocalDNSAddon:
		c.NodeLocalDNS = new(true)
	}
	return c
}

// CachesDNS reports whether hosts have the address of the DNS cache, and pods use it.
func (c Cluster) CachesDNS() bool {
	wanted := c.DefaultAddon(NodeLocalDNSAddon)
	return wanted != nil && *wanted
}

// LacksDefaultAddon reports whether the name is one of DefaultAddons that the cluster is not to have.
func (c Cluster) LacksDefaultAddon(name string) bool {
	if !slices.Contains(DefaultAddons(), name) || slices.Contains(c.ReplacedAddons, name) {
		return false
	}
	wanted := c.DefaultAddon(name)
	return wanted == nil || !*wanted
}

// AddonsWithImages returns the names of the desired addons whose images are part of the release.
func (c Cluster) AddonsWithImages() []string {
	out := slices.Clone(c.EmbeddedAddons)
	if wanted := c.DefaultAddon(MetricsServerAddon); wanted != nil && *wanted {
		out = append(out, MetricsServerAddon)
	}
	slices.Sort(out)
	return out
}

// AddonImagesDigest is the name under which a host notes that it has the images of addons.
const AddonImagesDigest = "addon-images"

// WorkloadImagesDigest is the name under which a host notes Cluster.WorkloadImages.
const WorkloadImagesDigest = "workload-images"

// IsImagesDigest reports whether the name is that of a note about images. Hosts note them with their images, and not
// when they have joined.
func IsImagesDigest(name string) bool {
	return slices.Contains([]string{DNSImageDigest, AddonImagesDigest, WorkloadImagesDigest}, name)
}

// NotedAddons returns the addons whose images hosts note: AddonsWithImages, and the network plugin with its version,
// because another kubeone may have another version of it for the same version of Kubernetes.
func (c Cluster) NotedAddons() []string {
	out := c.AddonsWithImages()
	if cni := c.Network.CNI; cni.Version != "" {
		out = append(out, cni.Name+" "+cni.Version)
	}
	return out
}

// AddonImagesNote returns the digest that hosts note for the images of addons; "" if they note none.
func AddonImagesNote(want Cluster) string {
	names := want.NotedAddons()
	if len(names) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(append(names, want.Registry.Overwrite), "\n")))
	return hex.EncodeToString(sum[:])
}
