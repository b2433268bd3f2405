// Package external is the network plugin that somebody else deploys.
package external

import (
	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Plugin brings nothing along.
type Plugin struct{}

// Name is the plugin's.
func (Plugin) Name() string { return desired.ExternalCNI }

// Binaries are none.
func (Plugin) Binaries() []network.Binary { return nil }

// Images are none.
func (Plugin) Images() []network.Image { return nil }

// Objects are none.
func (Plugin) Objects(desired.Cluster) ([]resources.Object, error) { return nil, nil }

// Workloads are none.
func (Plugin) Workloads() []resources.Workload { return nil }

// Config is none: who deploys the plugin brings it.
func (Plugin) Config(desired.Cluster) network.Config { return network.Config{} }

// Ports are none: who deploys the plugin knows them.
func (Plugin) Ports() []desired.PortRange { return nil }

// Traces are interfaces of the plugins that are deployed most.
func (Plugin) Traces() network.Traces {
	return network.Traces{Interfaces: []string{"cali", "cilium_", "vxlan.calico"}}
}
