// Package canal is the network plugin canal: the VXLAN of flannel between the hosts, and the network policies of
// Calico. Its objects come from the manifest that the Calico project publishes.
package canal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Versions as the projects tag them, without v. The manifest of a Calico version names its flannel.
const (
	version        = "3.32.0"
	flannelVersion = "0.24.4"
)

// The names in the manifest.
const (
	namespace      = "kube-system"
	daemonSet      = "canal"
	deployment     = "calico-kube-controllers"
	configMap      = "canal-config"
	configFile     = "10-canal.conflist"
	installCNI     = "install-cni"
	configFileName = "CNI_CONF_NAME"
)

// Plugin is canal.
type Plugin struct{}

var _ network.Publisher = Plugin{}

// Name returns the name of the plugin and its addon.
func (Plugin) Name() string { return "canal" }

// Version returns the version of Calico.
func (Plugin) Version() string { return version }

// Binaries returns none: an init container installs the CNI plugins.
func (Plugin) Binaries() []network.Binary { return nil }

// Images returns the images of the manifest.
func (Plugin) Images() []network.Image {
	return []network.Image{
		{Registry: "quay.io", Repository: "calico/cni", Tag: "v" + version},
		{Registry: "quay.io", Repository: "calico/node", Tag: "v" + version},
		{Registry: "quay.io", Repository: "calico/kube-controllers", Tag: "v" + version},
		{Registry: "docker.io", Repository: "flannel/flannel", Tag: "v" + flannelVersion},
	}
}

// Manifest returns the manifest of this version.
func (Plugin) Manifest() network.Manifest {
	return network.Manifest{
		Name: "canal-manifest", Version: version, Host: "raw.githubusercontent.com",
		Path: "projectcalico/calico/v" + version + "/manifests/canal.yaml",
	}
}

// Workloads returns its DaemonSet and the controllers of Calico.
func (Plugin) Workloads() []resources.Workload {
	return []resources.Workload{
		{Kind: "DaemonSet", Namespace: namespace, Name: daemonSet},
		{Kind: "Deployment", Namespace: namespace, Name: deployment},
	}
}

// Ports returns the port of its VXLAN on Linux.
func (Plugin) Ports(desired.CNI) []desired.PortRange {
	return []desired.PortRange{{Ports: "8472", Protocol: "udp", What: "canal (VXLAN)", From: "all hosts"}}
}

// Traces returns what flannel and Calico leave on a host.
func (Plugin) Traces() network.Traces {
	return network.Traces{
		Interfaces: []string{"flannel.", "cali"},
		Tables:     []string{"calico"},
		Chains:     []string{"FLANNEL-", "cali-", "cali:"},
		Paths:      []string{"/run/flannel", "/run/calico", "/var/lib/calico", "/var/log/calico", "/run/nodeagent"},
	}
}

// Config names the file that the init container writes.
func (Plugin) Config(desired.Cluster) network.Config {
	return network.Config{Written: []string{configFile}}
}

// settings are what the manifest gets from the cluster.
type settings struct {
	PodSubnet string   `json:"podSubnet"`
	MTU       int      `json:"mtu"`
	Images    []string `json:"images"` // names in the cluster, in the order of Plugin.Images
}

// Settings returns the pod network, the MTU and the images.
func (p Plugin) Settings(want desired.Cluster) (any, error) { return p.newSettings(want) }

func (p Plugin) newSettings(want desired.Cluster) (settings, error) {
	out := settings{PodSubnet: want.Network.PodSubnet, MTU: want.Network.CNI.MTU}
	if out.PodSubnet == "" {
		return out, errors.New("the cluster has no IPv4 pod subnet, which canal needs here")
	}
	for _, i := range p.Images() {
		name, err := network.ImageNamed(want.Artifacts, i.Repository)
		if err != nil {
			return out, err
		}
		out.Images = append(out.Images, name)
	}
	return out, nil
}

// Objects adapts the manifest to the cluster.
func (p Plugin) Objects(want desired.Cluster) ([]resources.Object, error) {
	s, err := p.newSettings(want)
	if err != nil {
		return nil, err
	}
	manifest, err := network.PublishedManifest(want.Artifacts, p.Manifest())
	if err != nil {
		return nil, err
	}
	objects, err := network.ParseManifest(manifest.Content,
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "DaemonSet", "Deployment",
		"PodDisruptionBudget", "ServiceAccount")
	if err == nil {
		err = p.adaptObjects(objects, s, want.Artifacts)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", manifest.URL, err)
	}
	return objects, nil
}

// adaptObjects applies every rule.
func (p Plugin) adaptObjects(objects network.Objects, s settings, artifacts map[string]desired.Artifacts) error {
	config, err := objects.Find("ConfigMap", namespace, configMap)
	if err != nil {
		return err
	}
	if err := adaptConfig(config, s); err != nil {
		return err
	}
	if err := objects.SetImages(p.Images(), artifacts); err != nil {
		return err
	}
	pods, err := objects.Find("DaemonSet", namespace, daemonSet)
	if err != nil {
		return err
	}
	if _, err := objects.Find("Deployment", namespace, deployment); err != nil {
		return err
	}
	name, err := network.Env(pods, installCNI, configFileName)
	if err == nil {
		err = checkEqual("the CNI configuration of container "+installCNI, name, configFile)
	}
	if err != nil {
		return err
	}
	return annotatePods(pods, config)
}

// adaptConfig sets the pod network and the MTU of pods. flannel uses the interface of the default route.
func adaptConfig(config resources.Object, s settings) error {
	if err := network.ChangeText(config, func(text string) (string, error) {
		return setPodSubnet(text, s.PodSubnet)
	}, "data", "net-conf.json"); err != nil {
		return err
	}
	if err := network.SetText(config, strconv.Itoa(s.MTU), "data", "veth_mtu"); err != nil {
		return err
	}
	return network.SetText(config, "", "data", "canal_iface")
}

// setPodSubnet sets the network in the configuration of flannel, whose backend must be VXLAN.
//
// Format: https://github.com/flannel-io/flannel/blob/master/Documentation/configuration.md
func setPodSubnet(text, subnet string) (string, error) {
	var conf map[string]any
	if err := json.Unmarshal([]byte(text), &conf); err != nil {
		return "", err
	}
	backend, _, err := unstructured.NestedString(conf, "Backend", "Type")
	if err == nil {
		err = checkEqual("the backend", backend, "vxlan")
	}
	if err != nil {
		return "", err
	}
	if _, ok := conf["Network"].(string); !ok {
		return "", errors.New("the manifest does not have Network")
	}
	conf["Network"] = subnet
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(conf)
	return out.String(), err
}

func checkEqual(what, have, want string) error {
	if have == want {
		return nil
	}
	return fmt.Errorf("%s is %q, but this version of kubeone expects %q", what, have, want)
}

// annotatePods makes the pods depend on their configuration, which they read only once.
func annotatePods(pods, config resources.Object) error {
	text, err := json.Marshal(config["data"])
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	return unstructured.SetNestedField(pods, hex.EncodeToString(sum[:]),
		"spec", "template", "metadata", "annotations", "kubeone.k8c.io/canal-config-sha256")
}
