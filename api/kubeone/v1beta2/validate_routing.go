package v1beta2

import (
	"net/netip"
	"slices"
	"strings"
)

func (f *findings) cni(n ClusterNetworkConfig) {
	const path = "clusterNetwork.cni"
	c := n.CNI
	if chosen := slices.Sorted(slices.Values(c.chosen())); len(chosen) > 1 {
		f.errorf(path, "keep one of them", "sets %d network plugins (%s); only one is allowed", len(chosen),
			strings.Join(chosen, ", "))
	}
	if c.Canal != nil && c.Canal.MTU < 0 {
		f.errorf(path+".canal.mtu", "", "%d is not a valid size in bytes", c.Canal.MTU)
	}
	if c.WeaveNet != nil {
		f.errorf(path+".weaveNet", "use another network plugin", "the Weave Net project ended in 2024")
	}
	if c.Cilium != nil {
		f.cilium(path+".cilium", *c.Cilium, n.KubeProxy)
	}
}

func (f *findings) cilium(path string, c CiliumSpec, k *KubeProxyConfig) {
	replaces := c.ReplacesKubeProxy()
	if !slices.Contains([]string{"", "strict", "disabled", "true", "false"}, c.KubeProxyReplacement) {
		f.errorf(path+".kubeProxyReplacement", "use strict or disabled", "%q is not supported", c.KubeProxyReplacement)
	}
	if replaces && !k.SkipInstallation {
		f.errorf(path+".kubeProxyReplacement", "set clusterNetwork.kubeProxy.skipInstallation",
			"cilium replaces kube-proxy, but kube-proxy would be installed too")
	}
	if c.EnableGatewayAPI && !replaces {
		f.errorf(path+".enableGatewayAPI", "set kubeProxyReplacement: strict",
			"needs cilium as a replacement for kube-proxy")
	}
	if c.EnableLocalRedirectPolicy && !replaces {
		f.errorf(path+".enableLocalRedirectPolicy", "set kubeProxyReplacement: strict",
			"needs cilium as a replacement for kube-proxy")
	}
}

// ipvsSchedulers returns the kernel's schedulers (ipvsadm(8)) that kube-proxy accepts.
func ipvsSchedulers() []string {
	return []string{"rr", "lc", "dh", "sh", "sed", "nq", "wrr", "wlc", "lblc", "lblcr", "mh"}
}

func (f *findings) kubeProxy(k *KubeProxyConfig) {
	const path = "clusterNetwork.kubeProxy"
	modes := named(map[string]bool{"ipvs": k.IPVS != nil, "iptables": k.IPTables != nil, "nftables": k.NFTables != nil})
	if len(modes) > 1 {
		f.errorf(path, "keep one of them", "sets %d modes (%s); only one is allowed", len(modes),
			strings.Join(modes, ", "))
	}
	if k.IPVS != nil {
		f.ipvs(path+".ipvs", *k.IPVS)
	}
	if c := k.Conntrack; c != nil {
		if *c.MaxPerCore < 0 {
			f.errorf(path+".conntrack.maxPerCore", "0 keeps the kernel setting", "%d is less than 0", *c.MaxPerCore)
		}
		if *c.Min < 0 {
			f.errorf(path+".conntrack.min", "0 keeps the kernel setting", "%d is less than 0", *c.Min)
		}
	}
}

func (f *findings) ipvs(path string, v IPVSConfig) {
	if v.Scheduler != "" && !slices.Contains(ipvsSchedulers(), v.Scheduler) {
		f.errorf(path+".scheduler", "use one of: "+strings.Join(ipvsSchedulers(), ", "),
			"%q is not a supported scheduler",
			v.Scheduler)
	}
	for i, cidr := range v.ExcludeCIDRs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			f.errorf(Item(path+".excludeCIDRs", i), "use a subnet such as "+DefaultPodSubnet, "%q is not a valid subnet", cidr)
		}
	}
	f.duration(path+".tcpTimeout", v.TCPTimeout)
	f.duration(path+".tcpFinTimeout", v.TCPFinTimeout)
	f.duration(path+".udpTimeout", v.UDPTimeout)
}

// named returns the names whose value is true, sorted.
func named(set map[string]bool) []string {
	return slices.DeleteFunc(sortedKeys(set), func(name string) bool { return !set[name] })
}
