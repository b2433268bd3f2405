// Package network defines what a network plugin is. Each plugin has a folder below this one and a row in the table
// (plugins). No other code knows a plugin by name.
//
// A plugin is values and pure functions of the desired cluster. The general code renders, downloads, installs and
// removes it.
package network

import (
	"fmt"
	"strings"

	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Plugin is one network plugin.
type Plugin interface {
	// Name is the plugin's name in the manifest's clusterNetwork.cni, in bundles, and in the record of applied
	// addons.
	Name() string
	// Binaries are the additional files for every host.
	Binaries() []Binary
	// Images are the container images for every host.
	Images() []Image
	// Objects renders the objects to apply; none for a plugin that another tool deploys.
	Objects(want desired.Cluster) ([]resources.Object, error)
	// Workloads are the objects that must be rolled out for the network to work.
	Workloads() []resources.Workload
	// Config is the CNI configuration for a host's container runtime; zero for none. It is the same on every host. If
	// the configuration differs by host, such as by the Node's pod CIDR, the plugin's pods write it below
	// /etc/cni/net.d: complete, with mode 0600, and once the network works. Written then names it.
	Config(want desired.Cluster) Config
	// Ports are the ports for other hosts; none for a plugin that another tool deploys.
	Ports() []desired.PortRange
	// Traces are what it leaves on a host, for a reset to remove.
	Traces() Traces
}

// Binary is one archive with a program, as released on GitHub.
type Binary struct {
	Name    string
	Version string // without v; the tag has a v
	Project string // OWNER/REPOSITORY
	Asset   string // file name with {arch} for the architecture
	Sums    string // suffix of the file with the digest
	// Program is the program's name for the container runtime, and Files the shell pattern of its file name.
	Program, Files string
}

// AssetFor returns the name of the file for an architecture.
func (b Binary) AssetFor(arch string) string { return strings.ReplaceAll(b.Asset, "{arch}", arch) }

// Image is one container image.
type Image struct {
	Registry, Repository, Tag string
}

// Config is a CNI configuration. A Node is Ready once its container runtime has one, so the runtime gets it only when
// the plugin works.
type Config struct {
	File    string // name below /etc/cni/net.d
	Content string
	Ready   string // path that exists when the plugin works on the host
	// Written are the names below /etc/cni/net.d of configuration that the plugin's own pods write.
	Written []string
}

// Files returns the names of all of the plugin's configuration below /etc/cni/net.d.
func (c Config) Files() []string {
	if c.File == "" {
		return c.Written
	}
	return append([]string{c.File}, c.Written...)
}

// Traces are what a plugin leaves on a host after its pods, except what every reset removes: /etc/cni, /opt/cni,
// /var/lib/cni, the bridge cni0, pods' veth interfaces, and chains that begin with KUBE- or CNI-. Routes, routing
// rules and ipsets are not removed.
type Traces struct {
	Interfaces []string // name prefixes of network interfaces; their addresses are not the host's own
	Tables     []string // nftables tables
	Chains     []string // extended regular expressions for the plugin's lines in iptables-save
	Paths      []string // files and folders
}

// Host is the network configuration of a host.
type Host struct {
	Config   Config
	Binaries []Binary
	Traces   Traces // of every plugin that the host may have had
	// Namespaces are the namespaces of plugins, except kube-system.
	Namespaces []string
}

// ImageNamed finds the image from a repository among the artifacts, in any registry. All architectures must use the
// same name, because one DaemonSet serves them all.
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

// repositoryOf returns an image's name without tag and digest.
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i]
	}
	return name
}
