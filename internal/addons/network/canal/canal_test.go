package canal

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

// standIn returns a manifest with the form of the published one.
func standIn(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/canal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cluster returns a cluster with a mirror of the images, and with the manifest if it is not "".
func cluster(manifest string) desired.Cluster {
	a := desired.Artifacts{}
	for _, i := range (Plugin{}).Images() {
		a.Images = append(a.Images, desired.Image{Name: "registry.example:5000/" + i.Repository + ":" + i.Tag})
	}
	p := desired.PublishedManifest{Name: "canal-manifest", Version: version, Problem: "no route to host"}
	if manifest != "" {
		p.Content = []byte(manifest)
	}
	a.Published = []desired.PublishedManifest{p}
	return desired.Cluster{
		Network:   desired.Network{PodSubnet: "10.128.0.0/12", CNI: desired.CNI{Name: "canal", MTU: 1400}},
		Artifacts: map[string]desired.Artifacts{"amd64": a},
	}
}

func TestTheManifestIsAdaptedToTheCluster(t *testing.T) {
	t.Parallel()
	objects, err := (Plugin{}).Objects(cluster(standIn(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 8 || objects[0]["kind"] != "CustomResourceDefinition" ||
		objects[1]["kind"] != "PodDisruptionBudget" {
		t.Errorf("%d objects, first a %v", len(objects), objects[0]["kind"])
	}
	config, err := network.Objects(objects).Find("ConfigMap", "kube-system", "canal-config")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedStringMap(config, "data")
	want := map[string]string{
		"canal_iface": "", "masquerade": "true", "veth_mtu": "1400",
		"cni_network_config": got["cni_network_config"], // which the pods fill in
		"net-conf.json":      "{\n  \"Backend\": {\n    \"Type\": \"vxlan\"\n  },\n  \"Network\": \"10.128.0.0/12\"\n}\n",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	pods, err := network.Objects(objects).Find("DaemonSet", "kube-system", "canal")
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(pods, "spec", "template", "spec", "containers")
	if image := containers[1].(map[string]any)["image"]; image != "registry.example:5000/flannel/flannel:v0.24.4" {
		t.Error(image)
	}
}

// Pods read their configuration only once, so they are replaced when it changes.
func TestPodsDependOnTheirConfiguration(t *testing.T) {
	t.Parallel()
	sum := func(mtu int) string {
		c := cluster(standIn(t))
		c.Network.CNI.MTU = mtu
		objects, err := (Plugin{}).Objects(c)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := network.Objects(objects).Find("DaemonSet", "kube-system", "canal")
		if err != nil {
			t.Fatal(err)
		}
		annotations, _, _ := unstructured.NestedStringMap(pods, "spec", "template", "metadata", "annotations")
		return annotations["kubeone.k8c.io/canal-config-sha256"]
	}
	first, second, other := sum(1400), sum(1400), sum(1450)
	if first == "" || first != second || first == other {
		t.Error(first, second, other)
	}
}

func TestAManifestThatIsNotTheExpectedOneIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, changed, want string }{
		"no pod network": {`"Network": "10.244.0.0/16",`, "",
			"ConfigMap kube-system/canal-config: field data/net-conf.json: the manifest does not have Network"},
		"another backend": {`"vxlan"`, `"wireguard"`, `field data/net-conf.json: the backend is "wireguard"`},
		"another form":    {`"Network": "10.244.0.0/16",`, "{", "field data/net-conf.json: invalid character"},
		"no MTU":          {"veth_mtu", "mtu", "ConfigMap kube-system/canal-config: field data/veth_mtu: the manifest"},
		"no interface":    {"canal_iface", "iface", "field data/canal_iface: the manifest does not have it"},
		"a number":        {`canal_iface: "eth7"`, "canal_iface: 7", "field data/canal_iface: .data.canal_iface accessor"},
		"another ConfigMap": {"name: canal-config", "name: config",
			"ConfigMap kube-system/canal-config: the manifest does not have it"},
		"another DaemonSet": {"name: canal\n  namespace: kube-system\nspec", "name: c\n  namespace: kube-system\nspec",
			"DaemonSet kube-system/canal: the manifest does not have it"},
		"another image": {"image: docker.io/flannel/flannel:v0.24.4", "image: example.com/miner:v1",
			`DaemonSet kube-system/canal: field spec/template/spec/containers[1]/image: "example.com/miner:v1" is not an`},
		"a missing image": {"quay.io/calico/kube-controllers:v3.32.0", "quay.io/calico/node:v3.32.0",
			"no container of the manifest has the image quay.io/calico/kube-controllers:v3.32.0"},
		"another file": {"10-canal.conflist", "05-canal.conflist",
			`CNI configuration of container install-cni is "05-canal.conflist", but this version of kubeone expects`},
		"no file":      {"CNI_CONF_NAME", "CONF", "container install-cni: field env/CNI_CONF_NAME: the manifest"},
		"another kind": {"kind: PodDisruptionBudget", "kind: Secret", "Secret kube-system/calico-kube-controllers: a"},
		"no name":      {"  name: tiers.crd.example.com\n", "  labels: {}\n", "document 8: metadata.name is missing in"},
		"an object twice": {"name: calico-node\nrules", "name: calico-node\n---\nkind: ClusterRole\napiVersion: " +
			"rbac.authorization.k8s.io/v1\nmetadata:\n  name: calico-node\nrules", "ClusterRole calico-node: it is there"},
		"a key twice":     {"  masquerade: \"true\"\n", "  masquerade: \"true\"\n  masquerade: \"no\"\n", "already set"},
		"a hidden object": {"---\nkind: ClusterRole\n", "--- more\nkind: ClusterRole\n", "invalid Yaml document separator"},
		"too long":        {"# A stand-in", "#" + strings.Repeat(" ", network.MaxManifest), "bytes, more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := strings.ReplaceAll(standIn(t), c.old, c.changed)
			if manifest == standIn(t) {
				t.Fatalf("%q is not in the stand-in", c.old)
			}
			_, err := (Plugin{}).Objects(cluster(manifest))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheManifestTheImagesAndASubnetAreNeeded(t *testing.T) {
	t.Parallel()
	var missing *network.MissingManifestError
	if _, err := (Plugin{}).Objects(cluster("")); !errors.As(err, &missing) ||
		err.Error() != "canal-manifest 3.32.0: no route to host" {
		t.Errorf("without the manifest: %v", err)
	}
	c := cluster(standIn(t))
	c.Artifacts = nil
	if _, err := (Plugin{}).Objects(c); err == nil || errors.As(err, &missing) {
		t.Errorf("without images: %v", err)
	}
	c = cluster(standIn(t))
	c.Network.PodSubnet = ""
	if _, err := (Plugin{}).Objects(c); err == nil {
		t.Error("without an IPv4 pod subnet: no error")
	}
}
