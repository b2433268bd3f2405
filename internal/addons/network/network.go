// Package network says what a network plugin is to this program. Each plugin has a folder of its own below this one,
// and a row in the table (plugins); nothing else knows one by its name.
//
// A plugin is values and pure functions of what is wanted: it is rendered, downloaded, installed and removed by those
// that do the same for everything else.
package network

import (
	"fmt"
	"strings"

	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Plugin is one network plugin.
type Plugin interface {
	// Name is what the manifest's clusterNetwork.cni, bundles, and the record of what was applied call it.
	Name() string
	// Binaries are the files that every host gets besides those of Kubernetes.
	Binaries() []Binary
	// Images are the container images that every host gets.
	Images() []Image
	// Objects renders what is applied to the cluster; none for a plugin that somebody else deploys.
	Objects(want desired.Cluster) ([]resources.Object, error)
	// Workloads are those of its objects that must be rolled out for the network to work.
	Workloads() []resources.Workload
	// Config is the configuration with which a host's container runtime finds the plugin; the zero value for none. It
	// is the same on every host: a plugin whose configuration differs by host, as by the Node's pod CIDR, has its pods
	// write it below /etc/cni/net.d, whole, with mode 0600, and when the network works; Written names it.
	Config(want desired.Cluster) Config
	// Ports are those at which it reaches other hosts; none for a plugin that somebody else deploys.
	Ports() []desired.PortRange
	// Traces are what it leaves on a host, which a reset removes.
	Traces() Traces
}

// Binary is one archive with a program, as a release on GitHub.
type Binary struct {
	Name    string
	Version string // without v; it is tagged with v
	Project string // OWNER/REPOSITORY
	Asset   string // name of the file, in which {arch} stands for the architecture
	Sums    string // what the name of the file with its digest has more
	// Program is what the container runtime calls the archive's program, and Files the shell pattern of the
	// program's own name.
	Program, Files string
}

// AssetFor is the name of the file for an architecture.
func (b Binary) AssetFor(arch string) string { return strings.ReplaceAll(b.Asset, "{arch}", arch) }

// Image is one container image.
type Image struct {
	Registry, Repository, Tag string
}

// Config is a CNI configuration. A Node is Ready once its container runtime has one, so that the runtime gets it when
// the plugin works, and not before.
type Config struct {
	File    string // name below /etc/cni/net.d
	Content string
	Ready   string // path that is there when the plugin works on the host
	// Written are the names below /etc/cni/net.d of configuration that the plugin's own pods write.
	Written []string
}

// Files are the names of all of the plugin's configuration below /etc/cni/net.d.
func (c Config) Files() []string {
	if c.File == "" {
		return c.Written
	}
	return append([]string{c.File}, c.Written...)
}

// Traces are what is left of a plugin on a host when its pods are gone, besides what every reset removes: /etc/cni,
// /opt/cni, /var/lib/cni, the bridge cni0, pods' veth interfaces, and chains that begin with KUBE- or CNI-. Routes,
// rules of routing and ipsets are not removed.
type Traces struct {
	Interfaces []string // prefixes of names of network interfaces; their addresses are not the host's own
	Tables     []string // nftables tables
	Chains     []string // extended regular expressions: a line of iptables-save that has one is the plugin's
	Paths      []string // files and folders
}

// Host is what is done about the network on a host.
type Host struct {
	Config   Config
	Binaries []Binary
	Traces   Traces // of every plugin that a host may have had
	// Namespaces are those in which plugins run, but for kube-system.
	Namespaces []string
}

// ImageNamed finds the image from a repository among the artifacts, whatever registry it comes from. All architectures
// must name it alike, since one DaemonSet serves them all.
func ImageNamed(artifacts map[string]desired.Artifacts, repository string) (string, error) {
	found := ""
	for arch, release := range artifacts {
		for _, image := range release.Images {
			switch {
			case !strings.HasSuffix(repositoryOf(image.Name), "/"+repository):
			case found != "" && found != image.Name:
				return "", fmt.Errorf("the artifacts name two images %s: %s and, for %s, %s", repository, found, arch,
					image.Name)
			default:
				found = image.Name
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("the artifacts name no image %s", repository)
	}
	return found, nil
}

// repositoryOf is an image's name without tag and digest.
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i]
	}
	return name
}
