package v1beta2

import (
	"slices"
	"strings"
)

// Defaults of fields.
const (
	DefaultAPIPort        = 6443
	DefaultPodSubnet      = "10.244.0.0/16"
	DefaultServiceSubnet  = "10.96.0.0/12"
	DefaultPodSubnetIPv6  = "fd01::/48"
	DefaultServicesIPv6   = "fd02::/120"
	DefaultDomain         = "cluster.local"
	DefaultNodePortRange  = "30000-32767"
	DefaultIPFamily       = "IPv4"
	DefaultNodeMaskSize   = 24
	DefaultNodeMaskIPv6   = 64
	DefaultCanalMTU       = 1450
	DefaultConntrackCore  = 32768  // kube-proxy's own default
	DefaultConntrackMin   = 131072 // kube-proxy's own default
	DefaultLogMaxSize     = "100Mi"
	DefaultLogMaxFiles    = 5
	DefaultMaxUnavailable = "1"
	DefaultDrainTimeout   = "5m"
	DefaultBackupSchedule = "6h"
	DefaultBackupKeep     = 10
	DefaultHookTimeout    = "5m"
	controlPlaneTaintKey  = "node-role.kubernetes.io/control-plane"
	loopback              = "127.0.0.1/8,localhost"
	taintEffectNoSchedule = "NoSchedule"
)

// Default fills in unset fields, so that no other code needs to know defaults. It is idempotent. It does not choose a
// name, versions, a cloudProvider or addresses, but normalizes the spelling of versions and DNS names. Ignored fields
// get no default.
func (c *KubeOneCluster) Default() {
	for i := range c.ControlPlane.Hosts {
		c.ControlPlane.Hosts[i].defaultTo([]Taint{{Key: controlPlaneTaintKey, Effect: taintEffectNoSchedule}})
	}
	for i := range c.StaticWorkers.Hosts {
		c.StaticWorkers.Hosts[i].defaultTo([]Taint{})
	}
	c.Versions.Kubernetes = plainVersion(c.Versions.Kubernetes)
	c.APIEndpoint.setPlainNames()
	if c.APIEndpoint.Host == "" && len(c.ControlPlane.Hosts) > 0 {
		c.APIEndpoint.Host = c.ControlPlane.Hosts[0].PublicAddress
	}
	fill(&c.APIEndpoint.Port, DefaultAPIPort)
	c.ClusterNetwork.setDefaults()
	fill(&c.LoggingConfig.ContainerLogMaxSize, DefaultLogMaxSize)
	fill(&c.LoggingConfig.ContainerLogMaxFiles, DefaultLogMaxFiles)
	c.Proxy.setDefaults(c.ClusterNetwork)
	c.Upgrade.setDefaults()
	c.Features.setDefaults()
	fill(&c.Backup.Schedule, DefaultBackupSchedule)
	fillPointer(&c.Backup.Keep, DefaultBackupKeep)
	for i := range c.Hooks {
		fill(&c.Hooks[i].RunOn, HookOnOperator)
		fill(&c.Hooks[i].Timeout, DefaultHookTimeout)
	}
}

// PlainName returns a DNS name or an IP address in lower case and without a dot at the end, as kubeadm requires. Names
// of cloud load balancers can have capitals.
func PlainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func (e *APIEndpoint) setPlainNames() {
	e.Host = PlainName(e.Host)
	names := slices.Clone(e.AlternativeNames)
	for i, name := range names {
		names[i] = PlainName(name)
	}
	e.AlternativeNames = names
}

func (h *HostConfig) setPlainNames() {
	for _, name := range []*string{&h.PublicAddress, &h.PrivateAddress, &h.Hostname, &h.Bastion} {
		*name = PlainName(*name)
	}
	h.IPv6Addresses = slices.Clone(h.IPv6Addresses)
	for i, address := range h.IPv6Addresses {
		h.IPv6Addresses[i] = PlainName(address)
	}
}

func plainVersion(v string) string { return strings.TrimPrefix(strings.TrimSpace(v), "v") }

func (h *HostConfig) defaultTo(taints []Taint) {
	h.Versions.Kubernetes, h.Versions.Containerd = plainVersion(h.Versions.Kubernetes),
		plainVersion(h.Versions.Containerd)
	h.setPlainNames()
	fill(&h.PublicAddress, h.PrivateAddress)
	fill(&h.PrivateAddress, h.PublicAddress)
	if h.Taints == nil {
		h.Taints = taints
	}
}

func (n *ClusterNetworkConfig) setDefaults() {
	fill(&n.PodSubnet, DefaultPodSubnet)
	fill(&n.ServiceSubnet, DefaultServiceSubnet)
	fill(&n.ServiceDomainName, DefaultDomain)
	fill(&n.NodePortRange, DefaultNodePortRange)
	fill(&n.IPFamily, DefaultIPFamily)
	fillPointer(&n.NodeCIDRMaskSizeIPv4, DefaultNodeMaskSize)
	if n.IPFamily == ipFamilyDualStack {
		fill(&n.PodSubnetIPv6, DefaultPodSubnetIPv6)
		fill(&n.ServiceSubnetIPv6, DefaultServicesIPv6)
		fillPointer(&n.NodeCIDRMaskSizeIPv6, DefaultNodeMaskIPv6)
	}
	if n.CNI == nil || *n.CNI == (CNI{}) {
		n.CNI = &CNI{Canal: &CanalSpec{}}
	}
	if n.CNI.Canal != nil {
		fill(&n.CNI.Canal.MTU, DefaultCanalMTU)
	}
	if n.KubeProxy == nil {
		n.KubeProxy = &KubeProxyConfig{}
	}
	n.KubeProxy.setDefaults()
}

func (k *KubeProxyConfig) setDefaults() {
	if k.IPTables == nil && k.IPVS == nil && k.NFTables == nil {
		k.IPTables = &IPTables{}
	}
	if k.Conntrack != nil {
		fillPointer(&k.Conntrack.MaxPerCore, DefaultConntrackCore)
		fillPointer(&k.Conntrack.Min, DefaultConntrackMin)
	}
}

func (u *UpgradeConfig) setDefaults() {
	fill(&u.MaxUnavailable, DefaultMaxUnavailable)
	fillPointer(&u.Canary, true)
	fill(&u.Drain.Timeout, DefaultDrainTimeout)
	fill(&u.Drain.OnTimeout, DrainStop)
}

// setDefaults adds the destinations that must not use the proxy to noProxy, if there is a proxy.
func (p *ProxyConfig) setDefaults(n ClusterNetworkConfig) {
	if p.HTTP == "" && p.HTTPS == "" {
		return
	}
	own := strings.Split(loopback, ",")
	own = append(own, n.ServiceDomainName, n.PodSubnet, n.ServiceSubnet)
	if n.IPFamily == ipFamilyDualStack {
		own = append(own, "::1", n.PodSubnetIPv6, n.ServiceSubnetIPv6)
	}
	list := splitList(p.NoProxy)
	seen := map[string]bool{}
	var out []string
	for _, entry := range append(own, list...) {
		if !seen[entry] {
			seen[entry] = true
			out = append(out, entry)
		}
	}
	p.NoProxy = strings.Join(out, ",")
}

// splitList splits a comma-separated list, without blanks and empty entries.
func splitList(s string) []string {
	var out []string
	for _, entry := range strings.Split(s, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func fillPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
