package v1beta2

import "reflect"

// ClusterNetworkConfig configures networks, the network plugin and kube-proxy.
type ClusterNetworkConfig struct {
	// PodSubnet is the IPv4 network of pods. Default: 10.244.0.0/16.
	PodSubnet string `json:"podSubnet,omitempty"`
	// PodSubnetIPv6 is the IPv6 network of pods in a dual-stack cluster. Default: fd01::/48.
	PodSubnetIPv6 string `json:"podSubnetIPv6,omitempty"`
	// ServiceSubnet is the IPv4 network of Services. Default: 10.96.0.0/12.
	ServiceSubnet string `json:"serviceSubnet,omitempty"`
	// ServiceSubnetIPv6 is the IPv6 network of Services in a dual-stack cluster. Default: fd02::/120.
	ServiceSubnetIPv6 string `json:"serviceSubnetIPv6,omitempty"`
	// ServiceDomainName is the cluster's DNS domain. Default: cluster.local.
	ServiceDomainName string `json:"serviceDomainName,omitempty"`
	// NodePortRange is the port range of NodePort Services. Default: 30000-32767.
	NodePortRange string `json:"nodePortRange,omitempty"`
	// CNI is the network plugin; exactly one. A new cluster needs one that is supported, or external. Default: canal.
	CNI *CNI `json:"cni,omitempty"`
	// KubeProxy configures kube-proxy, with one of iptables, ipvs and nftables. Default: iptables.
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty"`
	// IPFamily is IPv4, or IPv4+IPv6 for a dual-stack cluster, whose hosts all need ipv6Addresses. Default: IPv4.
	IPFamily string `json:"ipFamily,omitempty"`
	// NodeCIDRMaskSizeIPv4 is the prefix length of the range that each node gets from podSubnet. Default: 24.
	NodeCIDRMaskSizeIPv4 *int `json:"nodeCIDRMaskSizeIPv4,omitempty"`
	// NodeCIDRMaskSizeIPv6 is the prefix length of the range that each node gets from podSubnetIPv6. Default: 64.
	NodeCIDRMaskSizeIPv6 *int `json:"nodeCIDRMaskSizeIPv6,omitempty"`
}

// CNI is the network plugin: exactly one of its fields.
type CNI struct {
	// Canal is Calico's policies with flannel's network.
	Canal *CanalSpec `json:"canal,omitempty"`
	// Cilium is the eBPF network.
	Cilium *CiliumSpec `json:"cilium,omitempty"`
	// WeaveNet is the Weave network, whose project ended in 2024. It is refused.
	WeaveNet *WeaveNetSpec `json:"weaveNet,omitempty" carried:"no"`
	// Flannel is a VXLAN network without NetworkPolicies.
	Flannel *FlannelSpec `json:"flannel,omitempty"`
	// External is a network plugin that you deploy yourself. Nodes stay NotReady until you do.
	External *ExternalCNISpec `json:"external,omitempty"`
}

// Name returns the plugin: the name of the field that is set, or "".
func (c CNI) Name() string {
	if chosen := c.chosen(); len(chosen) > 0 {
		return chosen[0]
	}
	return ""
}

// chosen returns the names of the fields that are set, in their order.
func (c CNI) chosen() []string {
	var out []string
	v := reflect.ValueOf(c)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !v.FieldByIndex(f.Index).IsNil() {
			out = append(out, JSONName(f))
		}
	}
	return out
}

// CNINames returns the network plugins that a manifest may name.
func CNINames() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[CNI]()) {
		out = append(out, JSONName(f))
	}
	return out
}

// CanalSpec configures canal.
type CanalSpec struct {
	// MTU is the largest packet in the pod network, in bytes. Default: 1450.
	MTU int `json:"mtu,omitempty"`
}

// CiliumSpec configures cilium.
type CiliumSpec struct {
	// Version is the version of cilium, such as 1.20.2. Default: that of this version of kubeone.
	Version string `json:"version,omitempty"`
	// KubeProxyReplacement is `strict`, when cilium does kube-proxy's work, or `disabled`. Default: disabled.
	KubeProxyReplacement string `json:"kubeProxyReplacement,omitempty"`
	// EnableHubble deploys Hubble's relay and user interface. Default: false.
	EnableHubble bool `json:"enableHubble,omitempty"`
	// EnableL2Announcements announces load-balancer addresses on the local network. Default: false.
	EnableL2Announcements bool `json:"enableL2Announcements,omitempty"`
	// EnableGatewayAPI serves the Gateway API. Default: false.
	EnableGatewayAPI bool `json:"enableGatewayAPI,omitempty"`
	// EnableLocalRedirectPolicy allows local redirect policies. Default: false.
	EnableLocalRedirectPolicy bool `json:"enableLocalRedirectPolicy,omitempty"`
	// HelmValues are values of cilium's chart. They override those that kubeone sets.
	HelmValues Raw `json:"helmValues,omitempty" secret:"keys"`
}

// ReplacesKubeProxy reports whether cilium does kube-proxy's work.
func (c CiliumSpec) ReplacesKubeProxy() bool {
	return c.KubeProxyReplacement == "strict" || c.KubeProxyReplacement == "true"
}

// WeaveNetSpec configures Weave.
type WeaveNetSpec struct {
	// Encrypted encrypts the traffic between nodes. Default: false.
	Encrypted bool `json:"encrypted,omitempty"`
}

// FlannelSpec configures flannel; it has no settings.
type FlannelSpec struct{}

// ExternalCNISpec has no settings.
type ExternalCNISpec struct{}

// KubeProxyConfig configures kube-proxy.
type KubeProxyConfig struct {
	// SkipInstallation installs no kube-proxy. Default: false.
	SkipInstallation bool `json:"skipInstallation,omitempty"`
	// IPTables selects iptables mode.
	IPTables *IPTables `json:"iptables,omitempty"`
	// IPVS selects IPVS mode.
	IPVS *IPVSConfig `json:"ipvs,omitempty"`
	// NFTables selects nftables mode.
	NFTables *NFTables `json:"nftables,omitempty"`
	// Conntrack sizes the kernel's connection tracking table; 0 keeps the kernel's setting.
	Conntrack *Conntrack `json:"conntrack,omitempty"`
}

// IPTables has no settings.
type IPTables struct{}

// NFTables has no settings.
type NFTables struct{}

// IPVSConfig configures kube-proxy's IPVS mode.
type IPVSConfig struct {
	// Scheduler is the scheduling algorithm: rr, lc, dh, sh, sed, nq, wrr, wlc, lblc, lblcr or mh. Default: rr.
	Scheduler string `json:"scheduler,omitempty"`
	// ExcludeCIDRs are networks whose IPVS rules kube-proxy leaves alone.
	ExcludeCIDRs []string `json:"excludeCIDRs,omitempty"`
	// StrictARP answers ARP requests for local addresses only. Default: false.
	StrictARP bool `json:"strictARP,omitempty"`
	// TCPTimeout is the timeout of idle TCP sessions, as a Go duration; 0s keeps the kernel's setting.
	TCPTimeout string `json:"tcpTimeout,omitempty"`
	// TCPFinTimeout is the timeout of TCP sessions after a FIN, as a Go duration; 0s keeps the kernel's setting.
	TCPFinTimeout string `json:"tcpFinTimeout,omitempty"`
	// UDPTimeout is the timeout of idle UDP sessions, as a Go duration; 0s keeps the kernel's setting.
	UDPTimeout string `json:"udpTimeout,omitempty"`
}

// Conntrack sizes the kernel's connection tracking table.
type Conntrack struct {
	// MaxPerCore is the number of entries per CPU core. Default: 32768.
	MaxPerCore *int `json:"maxPerCore,omitempty"`
	// Min is the minimum number of entries, for any number of cores. Default: 131072.
	Min *int `json:"min,omitempty"`
}
