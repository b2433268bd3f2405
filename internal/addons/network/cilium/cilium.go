// Package cilium is the network plugin cilium: a VXLAN between the hosts, network policies, and optionally Services
// instead of kube-proxy, all in eBPF. It is a Helm release from the chart that the Cilium project publishes.
package cilium

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	chartloader "helm.sh/helm/v4/pkg/chart/v2/loader"

	"kubeone/internal/addons/network"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// defaultVersion is that of the chart and of the images with cilium's programs.
const defaultVersion = "1.20.2"

// minor is the minor version whose charts Values knows.
const minor = "1.20"

// The names in the chart.
const (
	daemonSet  = "cilium"
	operator   = "cilium-operator"
	configFile = "05-cilium.conflist"
	// sysctlFile turns off the filter of reverse paths on interfaces of cilium.
	sysctlFile = "/etc/sysctl.d/99-zzz-override_cilium.conf"
)

const (
	agentImage    = "cilium/cilium"
	operatorImage = "cilium/operator-generic"
)

// Plugin is cilium. The zero value is its default version.
type Plugin struct{ version string }

var (
	_ network.Charted   = Plugin{}
	_ network.Versioned = Plugin{}
)

// Name returns the name of the plugin and its release.
func (Plugin) Name() string { return "cilium" }

// Version returns the version of the chart and the images.
func (p Plugin) Version() string { return cmp.Or(p.version, defaultVersion) }

// WithVersion returns cilium in another patch version.
func (Plugin) WithVersion(version string) (network.Plugin, error) {
	if version != "" && !regexp.MustCompile(`^`+regexp.QuoteMeta(minor)+`\.(0|[1-9][0-9]{0,3})$`).MatchString(version) {
		return nil, fmt.Errorf("version %q of cilium is not supported; this version of kubeone supports %s.0 and later "+
			"patches, by default %s", version, minor, defaultVersion)
	}
	return Plugin{version}, nil
}

// Binaries returns none: the pods install the CNI plugin.
func (Plugin) Binaries() []network.Binary { return nil }

// Images returns the images that every cluster with cilium needs. Those of Hubble are pulled when they are used.
func (p Plugin) Images() []network.Image {
	return []network.Image{
		{Registry: "quay.io", Repository: agentImage, Tag: "v" + p.Version()},
		{Registry: "quay.io", Repository: operatorImage, Tag: "v" + p.Version()},
	}
}

// Chart returns the chart of this version.
func (p Plugin) Chart() network.Manifest {
	return network.Manifest{
		Name: "cilium-chart", Version: p.Version(), Host: "helm.cilium.io", Path: "cilium-" + p.Version() + ".tgz",
	}
}

// Objects returns none: they are part of the release.
func (Plugin) Objects(desired.Cluster) ([]resources.Object, error) { return nil, nil }

// Workloads returns the agents and the operator.
func (Plugin) Workloads() []resources.Workload {
	return []resources.Workload{
		{Kind: "DaemonSet", Namespace: desired.NetworkNamespace, Name: daemonSet},
		{Kind: "Deployment", Namespace: desired.NetworkNamespace, Name: operator},
	}
}

// Ports returns the ports of the agents.
func (Plugin) Ports(cni desired.CNI) []desired.PortRange {
	out := []desired.PortRange{
		{Ports: "8472", Protocol: "udp", What: "cilium (VXLAN)", From: "all hosts"},
		{Ports: "4240", Protocol: "tcp", What: "cilium (health checks)", From: "all hosts"},
	}
	if cni.Features.Hubble {
		out = append(out, desired.PortRange{Ports: "4244", Protocol: "tcp", What: "cilium (Hubble)", From: "all hosts"})
	}
	return out
}

// Traces returns what cilium leaves on a host. Without their pinned links, its eBPF programs are unloaded. The veth
// interfaces of pods begin with lxc too, and end with the pods.
func (Plugin) Traces() network.Traces {
	return network.Traces{
		Interfaces: []string{"cilium_", "lxc_health"},
		Chains:     []string{"CILIUM_", "OLD_CILIUM_"},
		Paths:      []string{"/sys/fs/bpf/cilium", "/sys/fs/bpf/tc/globals", "/run/cilium", sysctlFile},
	}
}

// Config names the file that the agent writes.
func (Plugin) Config(desired.Cluster) network.Config {
	return network.Config{Written: []string{configFile}}
}

// maxOperators is the number of operators that the chart runs by default. Each needs a Node of its own.
const maxOperators = 2

// Values returns the values of the chart: those that depend on the cluster, and the manifest's own, which precede.
//
// Values: https://github.com/cilium/cilium/blob/v1.20.2/install/kubernetes/cilium/values.yaml
func (p Plugin) Values(want desired.Cluster) (map[string]any, error) {
	if want.Network.PodSubnet == "" {
		return nil, errors.New("the cluster has no IPv4 pod subnet, which cilium needs here")
	}
	agent, err := network.ImageNamed(want.Artifacts, agentImage)
	if err != nil {
		return nil, err
	}
	operators, err := network.ImageNamed(want.Artifacts, operatorImage)
	if err != nil {
		return nil, err
	}
	features := want.Network.CNI.Features
	values := map[string]any{
		"image":             map[string]any{"override": agent},
		"rollOutCiliumPods": true, // the agents read their configuration only once
		"operator": map[string]any{
			"image":    map[string]any{"override": operators},
			"replicas": min(maxOperators, len(want.Hosts())), "rollOutPods": true,
		},
		// Nodes have their pod CIDRs from kube-controller-manager, as with the other plugins.
		"ipam": map[string]any{"mode": "kubernetes"},
		"k8s":  map[string]any{"requireIPv4PodCIDR": true, "requireIPv6PodCIDR": want.Network.IsDualStack()},
		"ipv6": map[string]any{"enabled": want.Network.IsDualStack()},
		// The agents need the API before there are Services.
		"k8sServiceHost":       want.Endpoint.Host,
		"k8sServicePort":       want.Endpoint.Port,
		"kubeProxyReplacement": features.ReplacesKubeProxy,
		"envoy":                map[string]any{"enabled": false}, // the agents start Envoy when a policy needs it
		"hubble":               hubbleValues(features.Hubble),
		"l2announcements":      map[string]any{"enabled": features.L2Announcements},
		"gatewayAPI":           map[string]any{"enabled": features.GatewayAPI},
		"localRedirectPolicies": map[string]any{
			"enabled": features.LocalRedirects,
		},
	}
	if from, to, ok := strings.Cut(want.Network.NodePortRange, "-"); ok {
		values["nodePort"] = map[string]any{"range": from + "," + to}
	}
	return chartloader.MergeMaps(values, want.Network.CNI.Values), nil
}

// hubbleValues returns the values of Hubble. A CronJob renews its certificates, because a release that does not change
// is not rendered again.
func hubbleValues(enabled bool) map[string]any {
	if !enabled {
		return map[string]any{"enabled": false}
	}
	return map[string]any{
		"enabled": true, "relay": map[string]any{"enabled": true}, "ui": map[string]any{"enabled": true},
		"tls": map[string]any{"auto": map[string]any{"method": "cronJob"}},
	}
}
