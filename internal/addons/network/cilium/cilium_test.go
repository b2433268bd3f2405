package cilium

import (
	"testing"

	"sigs.k8s.io/yaml"

	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/golden"
)

// newCluster returns a cluster of two hosts with cilium.
func newCluster() desired.Cluster {
	return desired.Cluster{
		Endpoint:     desired.Endpoint{Host: "api.example.com", Port: 6443},
		ControlPlane: []desired.Host{{ID: "a"}},
		Workers:      []desired.Host{{ID: "b"}},
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16", IPFamily: "IPv4", NodePortRange: "30000-32767", CNI: desired.CNI{Name: "cilium"},
		},
		Artifacts: map[string]desired.Artifacts{"amd64": {Images: []desired.Image{
			{Name: "mirror.example.com/cilium/cilium:v1.20.2"}, {Name: "mirror.example.com/cilium/operator-generic:v1.20.2"},
		}}},
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*desired.Cluster){
		"default": func(*desired.Cluster) {},
		"every-feature": func(c *desired.Cluster) {
			c.Workers, c.Network.NodePortRange, c.Network.IPFamily = nil, "20000-22767", "IPv4+IPv6"
			c.Network.CNI.Features = desired.CNIFeatures{
				ReplacesKubeProxy: true, Hubble: true, L2Announcements: true, GatewayAPI: true, LocalRedirects: true,
			}
		},
		"own-values": func(c *desired.Cluster) {
			c.Network.CNI.Values = map[string]any{
				"MTU": 1400, "operator": map[string]any{"replicas": 3}, "hubble": map[string]any{"enabled": true},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			change(&c)
			values, err := Plugin{}.Values(c)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/"+name+".golden.yaml", string(text))
		})
	}
}

func TestValuesNeedImagesAndAPodSubnet(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*desired.Cluster){
		"no images":     func(c *desired.Cluster) { c.Artifacts = nil },
		"no pod subnet": func(c *desired.Cluster) { c.Network.PodSubnet = "" },
	} {
		c := newCluster()
		change(&c)
		if values, err := (Plugin{}).Values(c); err == nil {
			t.Errorf("%s: %v", name, values)
		}
	}
}

// Own values do not change those of the plugin's next cluster.
func TestOwnValuesAreNotChanged(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.Network.CNI.Values = map[string]any{"operator": map[string]any{"replicas": 3}}
	for range 2 {
		if _, err := (Plugin{}).Values(c); err != nil {
			t.Fatal(err)
		}
	}
	if own, _ := c.Network.CNI.Values["operator"].(map[string]any); len(own) != 1 {
		t.Errorf("own values became %v", own)
	}
}

func TestVersionIsThatOfChartAndImages(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]string{"": defaultVersion, "1.20.1": "1.20.1", "1.20.10": "1.20.10"} {
		found, err := Plugin{}.WithVersion(chosen)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := found.(Plugin)
		if p.Version() != want || p.Chart().Version != want || p.Chart().Path != "cilium-"+want+".tgz" {
			t.Errorf("%q: version %s, chart %+v", chosen, p.Version(), p.Chart())
		}
		for _, image := range p.Images() {
			if image.Tag != "v"+want {
				t.Errorf("%q: image %+v", chosen, image)
			}
		}
	}
	for _, version := range []string{"v1.20.1", "1.20", "1.19.4", "1.21.0", "1.20.1-rc.1", "1.20.01", "1.20.1/..", "x"} {
		if _, err := (Plugin{}).WithVersion(version); err == nil {
			t.Errorf("%q is a version", version)
		}
	}
}

func TestHubbleNeedsAPort(t *testing.T) {
	t.Parallel()
	plain := Plugin{}.Ports(desired.CNI{})
	hubble := Plugin{}.Ports(desired.CNI{Features: desired.CNIFeatures{Hubble: true}})
	if len(plain) != 2 || len(hubble) != 3 || hubble[2].Ports != "4244" {
		t.Errorf("%v, with Hubble %v", plain, hubble)
	}
}
