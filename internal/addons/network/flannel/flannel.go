// Package flannel is the network plugin flannel: a VXLAN between the hosts, without network policies.
package flannel

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the objects
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// Versions as the projects tag them, without v.
const (
	version    = "0.26.7"
	cniVersion = "1.9.1-flannel1"
)

const repository = "flannel-io/flannel"

// objects use the names from the official flannel manifest, so that they match its documentation.
//
//go:embed objects.yaml
var objects string

// Plugin is flannel.
type Plugin struct{}

// Name returns the name of the plugin and its addon.
func (Plugin) Name() string { return "flannel" }

// Version returns the version of flannel.
func (Plugin) Version() string { return version }

// Binaries returns the CNI plugin that connects the container runtime to flannel's network.
func (Plugin) Binaries() []network.Binary {
	return []network.Binary{{
		Name: "cni-plugin-flannel", Version: cniVersion, Project: "flannel-io/cni-plugin",
		Asset: "cni-plugin-flannel-linux-{arch}-v" + cniVersion + ".tgz", Sums: ".sha256", Program: "flannel",
		Files: "flannel*",
	}}
}

// Images returns the image of its DaemonSet.
func (Plugin) Images() []network.Image {
	return []network.Image{{Registry: "ghcr.io", Repository: repository, Tag: "v" + version}}
}

// Workloads returns its DaemonSet.
func (Plugin) Workloads() []resources.Workload {
	return []resources.Workload{{Kind: "DaemonSet", Namespace: "kube-flannel", Name: "kube-flannel-ds"}}
}

// Ports returns the port of its VXLAN on Linux.
func (Plugin) Ports(desired.CNI) []desired.PortRange {
	return []desired.PortRange{{Ports: "8472", Protocol: "udp", What: "flannel (VXLAN)", From: "all hosts"}}
}

// Traces returns what flannel leaves on a host.
func (Plugin) Traces() network.Traces {
	return network.Traces{
		Interfaces: []string{"flannel.", "flannel-"},
		Tables:     []string{"flannel-ipv4", "flannel-ipv6"},
		Chains:     []string{"FLANNEL-"},
		Paths:      []string{"/run/flannel"},
	}
}

// Config comes with the host's other files, not through the DaemonSet, so that flannel's image needs nothing but
// flannel. The container runtime gets it when flannel has its lease. It omits the MTU, which flannel's plugin reads
// from the lease file.
func (Plugin) Config(desired.Cluster) network.Config {
	return network.Config{File: "10-flannel.conflist", Content: cniConf(), Ready: "/run/flannel/subnet.env"}
}

// cniConf has the format of https://github.com/containernetworking/cni/blob/main/SPEC.md#configuration-format.
func cniConf() string {
	return indentJSON(map[string]any{
		"name":       "cbr0",
		"cniVersion": "0.3.1",
		"plugins": []any{
			map[string]any{
				"type":     "flannel",
				"delegate": map[string]any{"hairpinMode": true, "isDefaultGateway": true},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	})
}

// vxlanOverhead is what VXLAN over IPv4 adds to a packet, in bytes: Ethernet, IP, UDP and VXLAN headers.
const vxlanOverhead = 14 + 20 + 8 + 8

// netConf returns flannel's own configuration.
//
// Format: https://github.com/flannel-io/flannel/blob/master/Documentation/configuration.md
func netConf(n desired.Network) (string, error) {
	if n.PodSubnet == "" {
		return "", errors.New("the cluster has no IPv4 pod subnet, which flannel needs here")
	}
	backend := map[string]any{"Type": "vxlan"}
	if n.CNI.MTU > 0 {
		backend["MTU"] = n.CNI.MTU + vxlanOverhead // flannel needs the outer MTU, the manifest has the pods' MTU
	}
	conf := map[string]any{
		"Network":        n.PodSubnet,
		"EnableIPv4":     true,
		"EnableNFTables": n.KubeProxy.Mode == "nftables",
		"Backend":        backend,
	}
	if n.IsDualStack() {
		conf["EnableIPv6"], conf["IPv6Network"] = true, n.PodSubnetIPv6
	}
	return indentJSON(conf), nil
}

// values fill objects.yaml.
type values struct {
	Image    string
	Endpoint desired.Endpoint
	// NetConfSum replaces the pods when the configuration changes: flannel reads it only once.
	CNIConf, NetConf, NetConfSum string
}

// Objects renders objects.yaml.
func (Plugin) Objects(want desired.Cluster) ([]resources.Object, error) {
	image, err := network.ImageNamed(want.Artifacts, repository)
	if err != nil {
		return nil, err
	}
	conf, err := netConf(want.Network)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(conf))
	return resources.Render(objects, values{
		Image: image, Endpoint: want.Endpoint, CNIConf: cniConf(), NetConf: conf,
		NetConfSum: hex.EncodeToString(sum[:]),
	})
}

// indentJSON returns a value as JSON with sorted keys, two spaces of indentation and a final newline.
func indentJSON(value map[string]any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("a map of strings, numbers and booleans cannot be encoded: %v", err))
	}
	return text.String()
}
