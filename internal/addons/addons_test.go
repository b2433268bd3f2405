package addons

import (
	"bytes"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/desired"
	"kubeone/internal/golden"
	"kubeone/internal/network/plugins"
)

func want(change func(*desired.Cluster)) desired.Cluster {
	c := desired.Cluster{
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16",
			CNI:       desired.CNI{Name: "flannel"},
			KubeProxy: desired.KubeProxy{Mode: "iptables"},
		},
		Artifacts: map[string]desired.Artifacts{
			"amd64": {Images: []desired.Image{
				{Name: "registry.k8s.io/pause:3.10.2"},
				{Name: "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1"},
				{Name: "ghcr.io/flannel-io/flannel:v0.26.7"},
			}},
			"arm64": {Images: []desired.Image{{Name: "ghcr.io/flannel-io/flannel:v0.26.7"}}},
		},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func image(name string) func(*desired.Cluster) {
	return func(c *desired.Cluster) {
		c.Artifacts = map[string]desired.Artifacts{"amd64": {Images: []desired.Image{{Name: name}}}}
	}
}

func TestRenderedObjectsAreTheGoldenFiles(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*desired.Cluster){
		"flannel": nil,
		"flannel-nftables-mtu-mirror": func(c *desired.Cluster) {
			c.Network.KubeProxy.Mode, c.Network.CNI.MTU = "nftables", 1400
			image("registry.example:5000/mirror/flannel-io/flannel:v0.26.7")(c)
		},
		"coredns-pdb": func(c *desired.Cluster) {
			c.Network.CNI.Name, c.Network.DNS.Budget = desired.ExternalCNI, new(true)
		},
		"controllers": func(c *desired.Cluster) {
			c.Network.CNI.Name = desired.ExternalCNI
			c.Controllers = program()
		},
		"controllers-proxy": func(c *desired.Cluster) {
			c.Network.CNI.Name = desired.ExternalCNI
			c.Controllers, c.Proxy = program(), desired.Proxy{HTTPS: "http://proxy.example:3128", NoProxy: "10.0.0.0/8"}
			c.Controllers.Arch = ""
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := Render(want(change))
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			for _, addon := range rendered {
				text.WriteString("# addon " + addon.Name + ", digest " + addon.Digest + "\n")
				for _, o := range addon.Objects {
					one, err := yaml.Marshal(o.Object)
					if err != nil {
						t.Fatal(err)
					}
					text.WriteString("---\n" + string(one))
				}
			}
			golden.Check(t, filepath.Join("testdata", name+".golden.yaml"), text.String())
		})
	}
}

// program are the controllers of a test.
func program() *desired.Controllers {
	return &desired.Controllers{
		Image: desired.Image{Name: "kubeone.k8c.io/kubeone:sha256-0123456789abcdef"}, Arch: "amd64",
	}
}

func TestControllersFollowTheNetwork(t *testing.T) {
	t.Parallel()
	rendered, err := Render(want(func(c *desired.Cluster) { c.Controllers = program() }))
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered) != 2 || rendered[0].Name != "flannel" || rendered[1].Name != desired.ControllersAddon {
		t.Fatalf("%d addons: %+v", len(rendered), rendered)
	}
	if got, want := rendered[1].Wait, "kubeone-system/DaemonSet/kubeone-controller"; len(got) != 1 ||
		got[0].String() != want {
		t.Errorf("waits for %v, want %s", got, want)
	}
	other, err := Render(want(func(c *desired.Cluster) {
		c.Controllers = program()
		c.Controllers.Image.Name = "kubeone.k8c.io/kubeone:sha256-fedcba9876543210"
	}))
	if err != nil {
		t.Fatal(err)
	}
	if other[1].Digest == rendered[1].Digest || other[0].Digest != rendered[0].Digest {
		t.Error("another program changes the digest of the controllers, and of nothing else")
	}
}

func TestDigestChangesExactlyWithTheContent(t *testing.T) {
	t.Parallel()
	digest := func(change func(*desired.Cluster)) string {
		rendered, err := Render(want(change))
		if err != nil {
			t.Fatal(err)
		}
		return rendered[0].Digest
	}
	base := digest(nil)
	if again := digest(func(c *desired.Cluster) { c.Name = "other" }); again != base {
		t.Errorf("digest depends on what is not rendered: %s, then %s", base, again)
	}
	for name, change := range map[string]func(*desired.Cluster){
		"pod subnet": func(c *desired.Cluster) { c.Network.PodSubnet = "10.0.0.0/16" },
		"mtu":        func(c *desired.Cluster) { c.Network.CNI.MTU = 1400 },
		"mode":       func(c *desired.Cluster) { c.Network.KubeProxy.Mode = "nftables" },
		"image":      image("ghcr.io/flannel-io/flannel:v0.27.0"),
	} {
		if digest(change) == base {
			t.Errorf("%s changed and the digest did not", name)
		}
	}
}

func TestOtherNetworkPlugins(t *testing.T) {
	t.Parallel()
	plugin := func(name string) func(*desired.Cluster) {
		return func(c *desired.Cluster) { c.Network.CNI.Name = name }
	}
	for _, name := range append(v1beta2.CNINames(), "", "none") {
		if p, ok := plugins.Find(name); ok && len(p.Workloads()) > 0 {
			continue // deployed by this program
		}
		if got, err := Render(want(plugin(name))); err != nil || len(got) > 0 {
			t.Errorf("%s: got %v, %v; want no addon", name, got, err)
		}
	}
}
