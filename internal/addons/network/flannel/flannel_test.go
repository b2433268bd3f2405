package flannel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

func subnet(change func(*desired.Network)) desired.Network {
	n := desired.Network{PodSubnet: "10.244.0.0/16", KubeProxy: desired.KubeProxy{Mode: "iptables"}}
	if change != nil {
		change(&n)
	}
	return n
}

func TestConfigurationFollowsTheManifest(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*desired.Network)
		want   map[string]any
	}{
		"defaults": {nil, map[string]any{
			"Network": "10.244.0.0/16", "EnableIPv4": true, "EnableNFTables": false,
			"Backend": map[string]any{"Type": "vxlan"},
		}},
		"dual stack": {
			func(n *desired.Network) { n.IPFamily, n.PodSubnetIPv6 = desired.DualStack, "fd01::/48" },
			map[string]any{
				"Network": "10.244.0.0/16", "EnableIPv4": true, "EnableNFTables": false,
				"IPv6Network": "fd01::/48", "EnableIPv6": true,
				"Backend": map[string]any{"Type": "vxlan"},
			},
		},
		"nftables and packet size": {
			func(n *desired.Network) { n.KubeProxy.Mode, n.CNI.MTU = "nftables", 1450 },
			map[string]any{
				"Network": "10.244.0.0/16", "EnableIPv4": true, "EnableNFTables": true,
				"Backend": map[string]any{"Type": "vxlan", "MTU": float64(1500)},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := netConf(subnet(c.change))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImageAndSubnetAreNeeded(t *testing.T) {
	t.Parallel()
	image := map[string]desired.Artifacts{"amd64": {Images: []desired.Image{{Name: "ghcr.io/flannel-io/flannel:v1"}}}}
	similar := map[string]desired.Artifacts{
		"amd64": {Images: []desired.Image{{Name: "ghcr.io/flannel-io/flannel-cni-plugin:v1"}}},
	}
	for name, want := range map[string]desired.Cluster{
		"no artifacts":          {Network: subnet(nil)},
		"only a similar image":  {Network: subnet(nil), Artifacts: similar},
		"no IPv4 pods' network": {Artifacts: image},
	} {
		if _, err := (Plugin{}).Objects(want); err == nil {
			t.Errorf("%s: rendered without an error", name)
		}
	}
	if objects, err := (Plugin{}).Objects(desired.Cluster{Network: subnet(nil), Artifacts: image}); err != nil ||
		len(objects) != 6 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}
