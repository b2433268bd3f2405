package addons

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/golden"
	"kubeone/internal/testutil/plugintest"
)

func want(change func(*desired.Cluster)) desired.Cluster {
	c := desired.Cluster{
		MetricsServer: new(false), NodeLocalDNS: new(false),
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

// canalArtifacts returns the artifacts of canal, with images below a prefix and a stand-in for its manifest.
func canalArtifacts(t *testing.T, prefix string) desired.Artifacts {
	t.Helper()
	out := desired.Artifacts{Published: plugintest.Published(t, "../..", "canal")}
	plugin, _ := plugins.Find("canal", "")
	for _, i := range plugin.Images() {
		out.Images = append(out.Images, desired.Image{Name: prefix + i.Repository + ":" + i.Tag})
	}
	return out
}

// The digest of an addon from a published manifest is known before its content is: it depends on the version of the
// manifest and on what is set in it.
func TestDigestOfAPublishedManifestNeedsNoContent(t *testing.T) {
	t.Parallel()
	render := func(change func(*desired.Cluster, *desired.Artifacts)) Addon {
		c := want(func(c *desired.Cluster) { c.Network.CNI = desired.CNI{Name: "canal", MTU: 1450} })
		a := canalArtifacts(t, "quay.io/")
		if change != nil {
			change(&c, &a)
		}
		c.Artifacts = map[string]desired.Artifacts{"amd64": a}
		rendered, err := Render(c)
		if err != nil || len(rendered) != 1 {
			t.Fatal(rendered, err)
		}
		return rendered[0]
	}
	whole := render(nil)
	if len(whole.Objects) != 8 || whole.Problem != "" || len(whole.Manifest) != 64 || len(whole.Wait) != 2 {
		t.Errorf("%d objects, problem %q, manifest %q, waits %v", len(whole.Objects), whole.Problem, whole.Manifest,
			whole.Wait)
	}
	absent := render(func(_ *desired.Cluster, a *desired.Artifacts) {
		a.Published[0].Content, a.Published[0].Problem = nil, "no route to host"
	})
	if absent.Digest != whole.Digest || len(absent.Objects) != 0 || absent.Manifest != "" ||
		absent.Problem != "canal-manifest 3.32.0: no route to host" || len(absent.Wait) != 2 {
		t.Errorf("without content: %+v", absent)
	}
	for name, change := range map[string]func(*desired.Cluster, *desired.Artifacts){
		"pod subnet": func(c *desired.Cluster, _ *desired.Artifacts) { c.Network.PodSubnet = "10.0.0.0/16" },
		"mtu":        func(c *desired.Cluster, _ *desired.Artifacts) { c.Network.CNI.MTU = 1400 },
		"image":      func(_ *desired.Cluster, a *desired.Artifacts) { a.Images[0].Name = "example.com/calico/cni:v1" },
	} {
		if render(change).Digest == whole.Digest {
			t.Errorf("%s changed and the digest did not", name)
		}
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
		"metrics-server": func(c *desired.Cluster) {
			c.Network.CNI.Name, c.MetricsServer = desired.ExternalCNI, nil
			c.Registry.Overwrite = "registry.example:5000/mirror"
		},
		"nodelocaldns": func(c *desired.Cluster) {
			c.Network.CNI.Name, c.NodeLocalDNS = desired.ExternalCNI, new(true)
			c.Network.ServiceSubnet, c.Network.DNSDomain = "10.96.0.0/12", "cluster.local"
			image("registry.k8s.io/coredns/coredns:v1.14.2")(c)
		},
		"canal-mirror": func(c *desired.Cluster) {
			c.Network.CNI = desired.CNI{Name: "canal", MTU: 1400}
			c.Artifacts = map[string]desired.Artifacts{"amd64": canalArtifacts(t, "registry.example:5000/mirror/")}
		},
		"coredns-pdb": func(c *desired.Cluster) {
			c.Network.CNI.Name, c.Network.DNS.Budget = desired.ExternalCNI, new(true)
		},
		"controllers": func(c *desired.Cluster) {
			c.Network.CNI.Name = desired.ExternalCNI
			c.Controllers = program()
			c.ControlPlane = []desired.Host{{Hostname: "cp-2"}, {Hostname: "CP-1"}}
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

// program returns the controllers of a test.
func program() *desired.Controllers {
	return &desired.Controllers{
		Image: desired.Image{Name: "kubeone.k8c.io/kubeone:sha256-0123456789abcdef"}, Arch: "amd64",
	}
}

// Without its objects, an addon without an inventory could not be removed.
func TestRemovableAddonsHaveObjects(t *testing.T) {
	t.Parallel()
	for _, name := range RemovableNames() {
		if len(Removable(name)) == 0 {
			t.Errorf("%s has none", name)
		}
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

// matches reports whether a Node is selected, for the selectors that controllers.yaml uses.
func matches(t *testing.T, term corev1.NodeSelectorTerm, n *corev1.Node) bool {
	t.Helper()
	if len(term.MatchFields)+len(term.MatchExpressions) != 1 {
		t.Fatalf("%+v", term)
	}
	if len(term.MatchFields) == 1 {
		field := term.MatchFields[0]
		if field.Key != "metadata.name" || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
			t.Fatalf("an API server refuses %+v", field)
		}
		return field.Values[0] == n.Name
	}
	label := term.MatchExpressions[0]
	if label.Operator != corev1.NodeSelectorOpDoesNotExist {
		t.Fatalf("%+v", label)
	}
	return !labels.Set(n.Labels).Has(label.Key)
}

// The controllers' token is only for hosts of the manifest; a label is not enough.
func TestControllersRunOnTheManifestsControlPlaneAlone(t *testing.T) {
	t.Parallel()
	of := func(names ...string) Addon {
		rendered, err := Render(want(func(c *desired.Cluster) {
			c.Controllers = program()
			for i, name := range names {
				c.ControlPlane = append(c.ControlPlane, desired.Host{ID: strconv.Itoa(i), Hostname: name})
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		return rendered[1]
	}
	runs := func(a Addon, node string, more map[string]string) bool {
		i := slices.IndexFunc(a.Objects, func(o unstructured.Unstructured) bool { return o.GetKind() == "DaemonSet" })
		ds := &appsv1.DaemonSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Objects[i].Object, ds); err != nil {
			t.Fatal(err)
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{
			"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "node-role.kubernetes.io/control-plane": "",
		}}}
		maps.Copy(n.Labels, more)
		pod := ds.Spec.Template.Spec
		terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		return labels.SelectorFromSet(pod.NodeSelector).Matches(labels.Set(n.Labels)) &&
			slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return matches(t, term, n) })
	}
	machine := map[string]string{desired.OwnerLabel: "uid"}
	posing := map[string]string{"kubernetes.io/hostname": "cp-1"}
	named, own := of("cp-1", "CP-2"), of("cp-1", "")
	for name, c := range map[string]struct {
		addon  Addon
		node   string
		labels map[string]string
		runs   bool
	}{
		"a host of the manifest":                  {named, "cp-2", nil, true},
		"another Node with the label":             {named, "w-1", nil, false},
		"a Machine with the label":                {named, "w-1", machine, false},
		"one that poses as a host":                {named, "w-1", posing, false},
		"a host that names itself":                {own, "cp-x", nil, true},
		"a Machine where a host names itself":     {own, "w-1", machine, false},
		"a named host where another names itself": {own, "cp-1", nil, true},
	} {
		if got := runs(c.addon, c.node, c.labels); got != c.runs {
			t.Errorf("%s: %t", name, got)
		}
	}
	if named.Digest != of("cp-2", "cp-1").Digest {
		t.Error("the order of hosts changes the digest")
	}
	if named.Digest == of("cp-1", "cp-2", "cp-3").Digest || named.Digest == own.Digest {
		t.Error("another host does not change the digest")
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
		if _, ok := plugins.Find(name, ""); ok && name != desired.ExternalCNI {
			continue // deployed by this program
		}
		if got, err := Render(want(plugin(name))); err != nil || len(got) > 0 {
			t.Errorf("%s: got %v, %v; want no addon", name, got, err)
		}
	}
}
