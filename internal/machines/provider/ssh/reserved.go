package ssh

import (
	"fmt"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/record"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
)

// NodeName is the name of the Node of a host of the manifest.
func NodeName(w desired.Host, r record.Record) string {
	if name := r.Nodes[w.ID]; name != "" {
		return name
	}
	return w.Hostname
}

// NamesOf are the names that the manifest and the record of a cluster know.
func NamesOf(c desired.Cluster, r record.Record) nodename.Names {
	return nodename.Of(c, observed.API{Record: &observed.Record{Nodes: r.Nodes, FormerEndpoints: r.FormerEndpoints}})
}

// Reserved is an error where a Host has a name or an address that is somebody else's in the cluster: a host of the
// manifest, the API's endpoint, or a Service. Its kubelet would get a certificate for that, and whoever may edit Hosts
// could pose as the API.
func Reserved(c desired.Cluster, r record.Record, h *kubeone.Host) error {
	names := NamesOf(c, r)
	for _, of := range [...]struct{ what, name string }{
		{"name", h.Name}, {"address", h.Spec.Address}, {"privateAddress", h.Spec.PrivateAddress},
	} {
		if whose := names.Holder("", of.name); of.name != "" && whose != "" {
			return fmt.Errorf("the Host %s: its %s %s is %s", h.Name, of.what, of.name, whose)
		}
	}
	return nil
}
