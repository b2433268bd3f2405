// Package external represents a network plugin that another tool deploys.
package external

import (
	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Plugin has no content of its own.
type Plugin struct{}

// Name returns the plugin's name.
func (Plugin) Name() string { return desired.ExternalCNI }

// Version returns none: it is unknown.
func (Plugin) Version() string { return "" }

// Binaries returns none.
func (Plugin) Binaries() []network.Binary { return nil }

// Images returns none.
func (Plugin) Images() []network.Image { return nil }

// Objects returns none.
func (Plugin) Objects(desired.Cluster) ([]resources.Object, error) { return nil, nil }

// Workloads returns none.
func (Plugin) Workloads() []resources.Workload { return nil }

// Config returns none: the other tool provides it.
func (Plugin) Config(desired.Cluster) network.Config { return network.Config{} }

// Ports returns none: they are unknown.
func (Plugin) Ports(desired.CNI) []desired.PortRange { return nil }

// Traces returns the interfaces of the most common plugins.
func (Plugin) Traces() network.Traces {
	return network.Traces{Interfaces: []string{"cali", "cilium_", "vxlan.calico"}}
}
