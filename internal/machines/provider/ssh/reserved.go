package ssh

import (
	"fmt"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/record"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
)

// NodeName returns the Node name of a host in the manifest: the recorded name, otherwise the hostname in the manifest.
func NodeName(w desired.Host, r record.Record) string {
	if name := r.Nodes[w.ID]; name != "" {
		return name
	}
	return w.Hostname
}

// NamesOf returns the names in the manifest and the record of a cluster.
func NamesOf(c desired.Cluster, r record.Record) nodename.Names {
	return nodename.Of(c, observed.API{Record: &observed.Record{Nodes: r.Nodes, FormerEndpoints: r.FormerEndpoints}})
}

// CheckReserved returns an error if a name or address of the Host belongs to a host in the manifest, the API endpoint
// or a Service. Without this check, its kubelet would receive a certificate for that name, and anyone who can edit
// Hosts could impersonate the API server.
func CheckReserved(c desired.Cluster, r record.Record, h *kubeone.Host) error {
	names := NamesOf(c, r)
	for _, field := range [...]struct{ what, name string }{
		{"name", h.Name}, {"address", h.Spec.Address}, {"privateAddress", h.Spec.PrivateAddress},
	} {
		if holder := names.Holder("", field.name); field.name != "" && holder != "" {
			return fmt.Errorf("the %[2]s %[3]s of Host %[1]s is %[4]s", h.Name, field.what, field.name, holder)
		}
	}
	return nil
}
