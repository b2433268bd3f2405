package componentconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/configtest"
)

// dualStack returns a dual-stack cluster.
func dualStack() desired.Cluster {
	c := configtest.Cluster()
	c.Network.IPFamily, c.Network.NodeCIDRMaskSizeIPv6 = desired.DualStack, 80
	c.Network.PodSubnetIPv6, c.Network.ServiceSubnetIPv6 = "fd01::/64", "fd02::/112"
	c.ControlPlane[0].IPv6Addresses = []string{"2001:db8::1", "2001:db8::2"}
	return c
}

func TestProgramsGetBothFamilies(t *testing.T) {
	t.Parallel()
	want := dualStack()
	got := map[string]any{
		"networking":  clusterConfiguration(want)["networking"],
		"node-ip":     kubeletArgs(Input{Want: want, Host: want.ControlPlane[0]})["node-ip"],
		"clusterCIDR": KubeProxyConfiguration(want)["clusterCIDR"],
	}
	for name, value := range controllerManagerFlags(want) {
		if strings.Contains(name, "cidr") {
			got[name] = value
		}
	}
	if diff := cmp.Diff(map[string]any{
		"networking": object{
			"podSubnet": "10.244.0.0/16,fd01::/64", "serviceSubnet": "10.96.0.0/12,fd02::/112",
			"dnsDomain": "cluster.local",
		},
		"node-ip": "10.0.0.1,2001:db8::1", "clusterCIDR": "10.244.0.0/16,fd01::/64",
		"node-cidr-mask-size-ipv4": "24", "node-cidr-mask-size-ipv6": "80",
	}, got); diff != "" {
		t.Error(diff)
	}
	if settings := kernelSettings(want); !strings.Contains(settings, "\nnet.ipv6.conf.all.forwarding = 1") {
		t.Errorf("no IPv6 forwarding:\n%s", settings)
	}
}
