// Package network defines the interface of network plugins. Each plugin has a folder under this one and an entry in the
// table in package plugins. No other code refers to a plugin by name.
//
// A plugin consists of values and pure functions of the desired cluster. Other packages render, download, install and
// remove it.
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
	// Version is the version of the plugin, without v; "" for a plugin that another tool deploys. Hosts note the version
	// whose images they have, so another image needs another version.
	Version() string
	// Binaries are the additional files for every host.
	Binaries() []Binary
	// Images are the container images for every host.
	Images() []Image
	// Objects renders the objects to apply. It returns none for a plugin that another tool deploys.
	Objects(want desired.Cluster) ([]resources.Object, error)
	// Workloads are the objects that must be rolled out for the network to work.
	Workloads() []resources.Workload
	// Config is the CNI configuration for the container runtime; the zero value is no configuration. It is the same on
	// every host. If the configuration differs by host, for example by the pod CIDR of the Node, the pods of the plugin
	// write it to /etc/cni/net.d. They write the complete file, with mode 0600, once the network works. Written then
	// contains the file name.
	Config(want desired.Cluster) Config
	// Ports are the ports that other hosts must reach. There are none for a plugin that another tool deploys.
	Ports(cni desired.CNI) []desired.PortRange
	// Traces are what the plugin leaves on a host. A reset removes them.
	Traces() Traces
}

// Publisher is a Plugin whose objects come from a manifest that its project publishes. Objects adapts the manifest to
// the cluster. It fails with a *MissingManifestError if the artifacts do not contain the content of the manifest.
type Publisher interface {
	Plugin
	// Manifest is the published file.
	Manifest() Manifest
	// Settings are what Objects sets in the manifest, as a value for JSON. The same version of the manifest with the
	// same settings gives the same objects.
	Settings(want desired.Cluster) (any, error)
}

// Charted is a Plugin that is a Helm release of its name in desired.NetworkNamespace, from the chart that its project
// publishes. Its Objects returns none.
type Charted interface {
	Plugin
	// Chart is the archive of the chart.
	Chart() Manifest
	// Values returns the values of the release. They may contain secrets from the manifest.
	Values(want desired.Cluster) (map[string]any, error)
}

// Versioned is a Plugin whose version the manifest may choose.
type Versioned interface {
	Plugin
	// WithVersion returns the plugin in a version; "" is the default. The error names the supported versions.
	WithVersion(version string) (Plugin, error)
}

// Manifest is a file as a project publishes it, at https://HOST/PATH: Kubernetes objects, or the archive of a chart.
type Manifest struct {
	Name       string // as a part of a release
	Version    string // without v
	Host, Path string
}

// URL returns the official location.
func (m Manifest) URL() string { return "https://" + m.Host + "/" + m.Path }

// Binary is one archive with a program, as released on GitHub.
type Binary struct {
	Name    string
	Version string // without v; the tag has a v
	Project string // OWNER/REPOSITORY
	Asset   string // file name with {arch} for the architecture
	Sums    string // suffix of the file with the digest
	// Program is the name that the container runtime uses for the program. Files is the shell pattern of its file
	// names.
	Program, Files string
}

// AssetFor returns the asset name for an architecture.
func (b Binary) AssetFor(arch string) string { return strings.ReplaceAll(b.Asset, "{arch}", arch) }

// Image is one container image.
type Image struct {
	Registry, Repository, Tag string
}

// Config is a CNI configuration. A Node becomes Ready once its container runtime has one. Therefore the runtime gets it
// only after the plugin works on the host.
type Config struct {
	File    string // name in /etc/cni/net.d
	Content string
	Ready   string // path that exists when the plugin works on the host
	// Written are the names in /etc/cni/net.d of configuration that the plugin's own pods write.
	Written []string
}

// Files returns the names of all configuration files of the plugin in /etc/cni/net.d.
func (c Config) Files() []string {
	if c.File == "" {
		return c.Written
	}
	return append([]string{c.File}, c.Written...)
}

// Traces are what a plugin leaves on a host after its pods are deleted. They do not include what every reset removes:
// /etc/cni, /opt/cni, /var/lib/cni, the bridge cni0, the veth interfaces of pods, and chains that begin with KUBE- or
// CNI-. Routes, routing rules and ipsets are not removed.
type Traces struct {
	Interfaces []string // name prefixes of network interfaces whose addresses do not count as addresses of the host
	Tables     []string // nftables tables
	Chains     []string // extended regular expressions that match the plugin's lines in iptables-save
	Paths      []string // files and folders
}

// Host is the network configuration for a host.
type Host struct {
	Config   Config
	Binaries []Binary
	Traces   Traces // of every plugin that the host may have had
	// Namespaces are the namespaces of plugins, except kube-system.
	Namespaces []string
}

// ImageNamed returns the name of the image with that repository path, in any registry. It fails if there is none, or if
// the names differ between architectures, because one DaemonSet uses the same name for all of them.
func ImageNamed(artifacts map[string]desired.Artifacts, repository string) (string, error) {
	found := ""
	for arch, release := range artifacts {
		for _, image := range release.Images {
			switch {
			case !strings.HasSuffix(repositoryOf(image.Name), "/"+repository):
			case found != "" && found != image.Name:
				return "", fmt.Errorf("the artifacts contain different images %s: %s and, for %s, %s", repository,
					found,
					arch, image.Name)
			default:
				found = image.Name
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("the artifacts do not contain an image %s", repository)
	}
	return found, nil
}

// repositoryOf returns the image name without its tag and digest.
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i]
	}
	return name
}
