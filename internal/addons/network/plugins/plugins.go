// Package plugins is the table of network plugins.
package plugins

import (
	"slices"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/network/external"
	"kubeone/internal/addons/network/flannel"
	"kubeone/internal/model/desired"
)

// All is the table. The first is what a bundle has unless told otherwise.
func All() []network.Plugin {
	return []network.Plugin{flannel.Plugin{}, external.Plugin{}}
}

// Names are those of all plugins, in the table's order.
func Names() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Name())
	}
	return out
}

// Find returns the plugin of that name, and whether there is one.
func Find(name string) (network.Plugin, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p network.Plugin) bool { return p.Name() == name })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// Ports are those at which the plugin of that name reaches other hosts.
func Ports(name string) []desired.PortRange {
	if p, ok := Find(name); ok {
		return p.Ports()
	}
	return nil
}

// Host is what the cluster's plugin needs on a host, and what any may have left there: the wanted one of a cluster need
// not be the one that it had.
func Host(want desired.Cluster) network.Host {
	out := network.Host{Traces: Traces(), Namespaces: Namespaces()}
	if p, ok := Find(want.Network.CNI.Name); ok {
		out.Config, out.Binaries = p.Config(want), p.Binaries()
	}
	return out
}

// Traces are those of all plugins.
func Traces() network.Traces {
	var out network.Traces
	for _, p := range All() {
		t := p.Traces()
		out.Interfaces = append(out.Interfaces, t.Interfaces...)
		out.Tables = append(out.Tables, t.Tables...)
		out.Chains = append(out.Chains, t.Chains...)
		out.Paths = append(out.Paths, t.Paths...)
	}
	return out
}

// Namespaces are those in which plugins run, but for kube-system.
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
