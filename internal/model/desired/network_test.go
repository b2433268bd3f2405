package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesFollowTheFamilies(t *testing.T) {
	t.Parallel()
	host := Host{PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1", IPv6Addresses: []string{"fd00::1", "fd00::2"}}
	c := Cluster{
		Endpoint:     Endpoint{Host: "api.example.com"},
		ControlPlane: []Host{host},
		Network:      Network{IPFamily: IPv4, PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/12"},
	}
	type addresses struct{ Node, Pods, Services, API []string }
	of := func(c Cluster) addresses {
		return addresses{
			c.Network.NodeAddresses(host), c.Network.PodNetworks(), c.Network.FirstServiceAddresses(), c.APINames(),
		}
	}
	if diff := cmp.Diff(addresses{
		Node: []string{"10.0.0.1"}, Pods: []string{"10.244.0.0/16"}, Services: []string{"10.96.0.1"},
		API: []string{"api.example.com", "192.0.2.1", "10.0.0.1", "127.0.0.1", "localhost"},
	}, of(c)); diff != "" {
		t.Errorf("IPv4: %s", diff)
	}
	c.Network.IPFamily, c.Network.PodSubnetIPv6, c.Network.ServiceSubnetIPv6 = DualStack, "fd01::/48", "fd02::/120"
	if diff := cmp.Diff(addresses{
		Node: []string{"10.0.0.1", "fd00::1"}, Pods: []string{"10.244.0.0/16", "fd01::/48"},
		Services: []string{"10.96.0.1", "fd02::1"},
		API: []string{"api.example.com", "192.0.2.1", "10.0.0.1", "fd00::1", "10.96.0.1", "fd02::1", "127.0.0.1",
			"localhost"},
	}, of(c)); diff != "" {
		t.Errorf("dual stack: %s", diff)
	}
	if got := c.Network.NodeAddresses(Host{PrivateAddress: "10.0.0.2"}); !cmp.Equal(got, []string{"10.0.0.2"}) {
		t.Errorf("a host without an IPv6 address: %v", got)
	}
}
