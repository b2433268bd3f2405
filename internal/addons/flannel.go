package addons

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kubeone/internal/desired"
)

// The names of what flannel consists of; they are those of flannel's own published manifest, so that kubectl users
// find what its documentation speaks of.
const (
	flannelNamespace = "kube-flannel"
	flannelName      = "flannel"
	flannelDaemonSet = "kube-flannel-ds"
	flannelConfig    = "kube-flannel-cfg"
	flannelImage     = "flannel-io/flannel"
)

// FlannelCNIConf is the CNI configuration (a .conflist) with which a host's container runtime finds flannel. It reaches the
// hosts with everything else that they get, not through the DaemonSet: so flannel's image needs nothing but flannel. The
// size of packets is not in it: flannel's plugin takes it from /run/flannel/subnet.env.
//
// Format: https://github.com/containernetworking/cni/blob/main/SPEC.md#configuration-format
func FlannelCNIConf(desired.Cluster) string {
	return indented(map[string]any{
		"name":       "cbr0",
		"cniVersion": "0.3.1",
		"plugins": []any{
			map[string]any{"type": "flannel", "delegate": map[string]any{"hairpinMode": true, "isDefaultGateway": true}},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	})
}

// vxlanOverhead is what VXLAN over IPv4 adds to a packet, in bytes: Ethernet, IP, UDP and VXLAN headers.
const vxlanOverhead = 14 + 20 + 8 + 8

// flannelNetConf is flannel's own configuration.
//
// Format: https://github.com/flannel-io/flannel/blob/master/Documentation/configuration.md
func flannelNetConf(n desired.Network) (string, error) {
	if n.PodSubnet == "" {
		return "", errors.New("the cluster has no IPv4 pod subnet, which flannel needs here")
	}
	backend := map[string]any{"Type": "vxlan"}
	if n.CNI.MTU > 0 {
		backend["MTU"] = n.CNI.MTU + vxlanOverhead // flannel wants the size outside, the manifest says that of pods
	}
	return indented(map[string]any{
		"Network":        n.PodSubnet,
		"EnableIPv4":     true,
		"EnableNFTables": n.KubeProxy.Mode == "nftables",
		"Backend":        backend,
	}), nil
}

// flannel renders the addon.
func flannel(want desired.Cluster) (Addon, error) {
	image, err := imageNamed(want.Artifacts, flannelImage)
	if err != nil {
		return Addon{}, err
	}
	netConf, err := flannelNetConf(want.Network)
	if err != nil {
		return Addon{}, err
	}
	config := object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": flannelMeta(flannelConfig, flannelNamespace, nil),
		"data":     map[string]any{"cni-conf.json": FlannelCNIConf(want), "net-conf.json": netConf},
	}
	wait := []Workload{{Kind: "DaemonSet", Namespace: flannelNamespace, Name: flannelDaemonSet}}
	objects := append(flannelAccess(), config, flannelPods(image, netConf, want.Endpoint))
	return newAddon("flannel", wait, objects...)
}

// imageNamed finds an image of the artefacts whose repository ends in the given path, whatever registry it comes from.
// All architectures must name it alike, since one DaemonSet serves them all.
func imageNamed(artifacts map[string]desired.Artifacts, path string) (string, error) {
	found := ""
	for arch, release := range artifacts {
		for _, image := range release.Images {
			switch {
			case !strings.HasSuffix(repository(image.Name), "/"+path):
			case found != "" && found != image.Name:
				return "", fmt.Errorf("the artefacts name two images %s: %s and, for %s, %s", path, found, arch, image.Name)
			default:
				found = image.Name
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("the artefacts name no image %s", path)
	}
	return found, nil
}

// repository is an image's name without tag and digest.
func repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i]
	}
	return name
}

// indented is a value as JSON with two spaces and a newline at the end, and with sorted keys.
func indented(value map[string]any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("a map of strings, numbers and booleans cannot be encoded: %v", err))
	}
	return text.String()
}
