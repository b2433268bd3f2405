// Package plugins is the table of network plugins.
package plugins

import (
	"fmt"
	"slices"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/canal"
	"kubeone/internal/addons/network/cilium"
	"kubeone/internal/addons/network/external"
	"kubeone/internal/addons/network/flannel"
	"kubeone/internal/model/desired"
)

// All returns the table. The first plugin is a bundle's default.
func All() []network.Plugin {
	return []network.Plugin{flannel.Plugin{}, canal.Plugin{}, cilium.Plugin{}, external.Plugin{}}
}

// Names returns the names of all plugins, in the table's order.
func Names() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Name())
	}
	return out
}

// Find returns the plugin with that name in a version, and whether it exists. "" is the plugin's default version.
func Find(name, version string) (network.Plugin, bool) {
	p, err := FindVersion(name, version)
	return p, err == nil
}

// FindVersion is like Find. The error says what is wrong with the name or the version.
func FindVersion(name, version string) (network.Plugin, error) {
	all := All()
	i := slices.IndexFunc(all, func(p network.Plugin) bool { return p.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown network plugin %q", name)
	}
	if versioned, ok := all[i].(network.Versioned); ok {
		return versioned.WithVersion(version)
	}
	if version != "" && version != all[i].Version() {
		return nil, fmt.Errorf("the version of the network plugin %s cannot be chosen", name)
	}
	return all[i], nil
}

// Ports returns the ports of the named plugin, without additional features, for other hosts.
func Ports(name string) []desired.PortRange {
	if p, ok := Find(name, ""); ok {
		return p.Ports(desired.CNI{Name: name})
	}
	return nil
}

// Published returns the files that the named plugin's project publishes, and that only kubeone needs: the manifest of
// its objects, its chart, or none. "" is the plugin's default version.
func Published(name, version string) []network.Manifest {
	p, _ := Find(name, version)
	switch p := p.(type) {
	case network.Publisher:
		return []network.Manifest{p.Manifest()}
	case network.Charted:
		return []network.Manifest{p.Chart()}
	}
	return nil
}

// Charted returns the names of the plugins that are Helm releases.
func Charted() []string {
	var out []string
	for _, p := range All() {
		if _, ok := p.(network.Charted); ok {
			out = append(out, p.Name())
		}
	}
	return out
}

// Host returns what the cluster's plugin needs on a host, and what any plugin may have left there: the cluster may
// have had another plugin before.
func Host(want desired.Cluster) network.Host {
	out := network.Host{Traces: Traces(), Namespaces: Namespaces()}
	if p, ok := Find(want.Network.CNI.Name, want.Network.CNI.Version); ok {
		out.Config, out.Binaries = p.Config(want), p.Binaries()
	}
	return out
}

// Traces returns the traces of all plugins.
func Traces() network.Traces {
	var out network.Traces
	for _, p := range All() {
		t := p.Traces()
		out.Interfaces = addMissing(out.Interfaces, t.Interfaces)
		out.Tables = addMissing(out.Tables, t.Tables)
		out.Chains = addMissing(out.Chains, t.Chains)
		out.Paths = addMissing(out.Paths, t.Paths)
	}
	return out
}

// addMissing appends the words that the list does not contain.
func addMissing(list, words []string) []string {
	for _, word := range words {
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

// Namespaces returns the namespaces of plugins, except kube-system.
func Namespaces() []string {
	var out []string
	for _, p := range All() {
		for _, w := range p.Workloads() {
			if w.Namespace != "kube-system" && !slices.Contains(out, w.Namespace) {
				out = append(out, w.Namespace)
			}
		}
	}
	return out
}
