package ssh

import (
	"fmt"
	"net/netip"
	"strings"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/record"
	"kubeone/internal/desired"
)

// NodeName is the name of the Node of a host of the manifest.
func NodeName(w desired.Host, r record.Record) string {
	if name := r.Nodes[w.ID]; name != "" {
		return name
	}
	return w.Hostname
}

// Reserved is an error where a Host has a name or an address that is somebody else's in the cluster: a host of the
// manifest, the API's endpoint, or a Service. Its kubelet would get a certificate for that, and whoever may edit Hosts
// could pose as the API.
func Reserved(c desired.Cluster, r record.Record, h *kubeone.Host) error {
	taken := map[string]string{"localhost": "every host's own name"}
	note := func(whose string, names ...string) {
		for _, name := range names {
			if name != "" {
				taken[canonical(name)] = whose
			}
		}
	}
	note("the API's endpoint", c.Endpoint.Host)
	note("the API's endpoint", c.Endpoint.AlternativeNames...)
	note("the API's former endpoint", r.FormerEndpoints...)
	for _, w := range c.Hosts() {
		note("a host of the manifest", w.Names()...)
		note("a host of the manifest", NodeName(w, r))
	}
	for what, name := range map[string]string{
		"name": h.Name, "address": h.Spec.Address, "privateAddress": h.Spec.PrivateAddress,
	} {
		name = canonical(name)
		if whose, ok := taken[name]; ok {
			return fmt.Errorf("the Host %s: its %s %s is that of %s", h.Name, what, name, whose)
		}
		if ip, err := netip.ParseAddr(name); err == nil {
			if ip.IsLoopback() || ip.IsUnspecified() || ofServices(c.Network, ip) {
				return fmt.Errorf("the Host %s: its %s %s is not the address of a host", h.Name, what, name)
			}
			continue
		}
		if name == "kubernetes" || strings.HasPrefix(name, "kubernetes.") || strings.HasSuffix(name, ".svc") ||
			strings.HasSuffix(name, "."+c.Network.DNSDomain) {
			return fmt.Errorf("the Host %s: its %s %s is that of a Service", h.Name, what, name)
		}
	}
	return nil
}

func canonical(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

func ofServices(n desired.Network, ip netip.Addr) bool {
	for _, text := range []string{n.ServiceSubnet, n.ServiceSubnetV6} {
		if subnet, err := netip.ParsePrefix(text); err == nil && subnet.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}
