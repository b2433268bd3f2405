package v1beta2

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of networks: kube-controller-manager divides a pod subnet among at most 2^16 nodes.
const (
	mostNodeBits         = 16
	narrowestNodeSubnet  = 28
	narrowestNodeIPv6    = 124
	ipFamilyIPv4         = "IPv4"
	ipFamilyIPv6         = "IPv6"
	ipFamilyDualStack    = "IPv4+IPv6"
	ipFamilyIPv6First    = "IPv6+IPv4"
	ipFamilyPath         = "clusterNetwork.ipFamily"
	nodePortRangePath    = "clusterNetwork.nodePortRange"
	reservedPorts        = 1024
	lastPort             = 65535
	overlapHint          = "use subnets that are not used elsewhere in the network of the hosts"
	addressInSubnetHint  = "use another subnet; pod and Service addresses must not overlap with hosts"
	serviceDomainExample = "use a DNS domain such as cluster.local"
)

// familyLimits are the limits and the fields of one IP family. kube-apiserver allows at most 2^20 Services, and CoreDNS
// has the tenth address of the service subnet.
type familyLimits struct {
	name                              string
	podField, serviceField, maskField string // under clusterNetwork
	widestServices, narrowestServices int
	narrowestNode                     int
	examplePods, exampleServices      string
}

func limitsOfIPv4() familyLimits {
	return familyLimits{
		ipFamilyIPv4, "podSubnet", "serviceSubnet", "nodeCIDRMaskSizeIPv4", 12, 28, narrowestNodeSubnet,
		DefaultPodSubnet, DefaultServiceSubnet,
	}
}

func limitsOfIPv6() familyLimits {
	return familyLimits{
		ipFamilyIPv6, "podSubnetIPv6", "serviceSubnetIPv6", "nodeCIDRMaskSizeIPv6", 108, 124, narrowestNodeIPv6,
		DefaultPodSubnetIPv6, DefaultServicesIPv6,
	}
}

func (f *findings) network(c *KubeOneCluster) {
	n := c.ClusterNetwork
	f.subnets(c, limitsOfIPv4(), n.PodSubnet, n.ServiceSubnet, n.NodeCIDRMaskSizeIPv4)
	if n.IPFamily == ipFamilyDualStack {
		f.subnets(c, limitsOfIPv6(), n.PodSubnetIPv6, n.ServiceSubnetIPv6, n.NodeCIDRMaskSizeIPv6)
	} else {
		f.unusedIPv6(n)
	}
	if len(validation.IsDNS1123Subdomain(n.ServiceDomainName)) > 0 {
		f.errorf("clusterNetwork.serviceDomainName", serviceDomainExample, "%q is not a valid DNS domain",
			n.ServiceDomainName)
	}
	f.nodePorts(n.NodePortRange)
	f.ipFamily(c)
	f.cni(n)
	f.kubeProxy(n.KubeProxy)
}

// subnets checks the networks of pods and Services of one IP family.
func (f *findings) subnets(c *KubeOneCluster, l familyLimits, podSubnet, serviceSubnet string, mask *int) {
	const path = "clusterNetwork."
	pods, podsOK := f.subnet(path+l.podField, l.name, podSubnet, l.examplePods)
	services, servicesOK := f.subnet(path+l.serviceField, l.name, serviceSubnet, l.exampleServices)
	if servicesOK && (services.Bits() < l.widestServices || services.Bits() > l.narrowestServices) {
		f.errorf(path+l.serviceField, "", "%s must have a prefix length from /%d to /%d", services, l.widestServices,
			l.narrowestServices)
	}
	if podsOK {
		f.nodeMask(c, l, pods, *mask)
		f.outside(c, "pod", pods)
	}
	if servicesOK {
		f.outside(c, "service", services)
	}
	if podsOK && servicesOK && pods.Overlaps(services) {
		f.errorf(path+l.podField, overlapHint, "%s overlaps the service subnet, %s", pods, services)
	}
}

// unusedIPv6 warns of IPv6 settings in a cluster without IPv6.
func (f *findings) unusedIPv6(n ClusterNetworkConfig) {
	l := limitsOfIPv6()
	for field, isSet := range map[string]bool{
		l.podField: n.PodSubnetIPv6 != "", l.serviceField: n.ServiceSubnetIPv6 != "",
		l.maskField: n.NodeCIDRMaskSizeIPv6 != nil,
	} {
		if isSet {
			f.warnf("clusterNetwork."+field, "set ipFamily to "+ipFamilyDualStack+", or remove the field",
				"has no effect, because ipFamily is %s", n.IPFamily)
		}
	}
}

// subnet parses a network. The host bits must be zero: 10.244.0.1/16 is usually a mistake.
func (f *findings) subnet(path, family, cidr, example string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(cidr)
	hint := "use a subnet such as " + example
	switch {
	case err != nil:
		f.errorf(path, hint, "%q is not a valid subnet", cidr)
	case p.Addr().Is4() != (family == ipFamilyIPv4) || p.Addr().Is4In6():
		f.errorf(path, hint, "%q is not an %s subnet", cidr, family)
	case p != p.Masked():
		f.errorf(path, fmt.Sprintf("did you mean %s?", p.Masked()), "%q is an address in a subnet, not a subnet",
			cidr)
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

// nodeMask checks that the pod subnet has room for all hosts.
func (f *findings) nodeMask(c *KubeOneCluster, l familyLimits, pods netip.Prefix, mask int) {
	path, hosts := "clusterNetwork."+l.maskField, len(c.ControlPlane.Hosts)+len(c.StaticWorkers.Hosts)
	bits := mask - pods.Bits()
	switch {
	case mask > l.narrowestNode || bits < 0:
		f.errorf(path, "", "/%d is not between the /%d of the pod subnet and /%d", mask, pods.Bits(), l.narrowestNode)
	case bits > mostNodeBits:
		f.errorf(path, fmt.Sprintf("use at most %d, or a smaller pod subnet", pods.Bits()+mostNodeBits),
			"/%d is more than %d bits longer than the /%d of the pod subnet", mask, mostNodeBits, pods.Bits())
	case 1<<bits < hosts:
		f.errorf("clusterNetwork."+l.podField, "use a larger pod subnet, or a longer "+l.maskField,
			"%s has room for %d nodes with a /%d each, but there are %d hosts", pods, 1<<bits, mask, hosts)
	}
}

// outside reports hosts and an API endpoint inside a subnet of the cluster.
func (f *findings) outside(c *KubeOneCluster, what string, subnet netip.Prefix) {
	check := func(at, address string) {
		if ip, err := netip.ParseAddr(address); err == nil && subnet.Contains(ip.Unmap()) {
			f.errorf(at, addressInSubnetHint, "%s is in the %s subnet, %s", address, what, subnet)
		}
	}
	each := func(path string, hosts []HostConfig) {
		for i, h := range hosts {
			check(Item(path, i)+".publicAddress", h.PublicAddress)
			if h.PrivateAddress != h.PublicAddress {
				check(Item(path, i)+".privateAddress", h.PrivateAddress)
			}
			for j, address := range h.IPv6Addresses {
				check(Item(Item(path, i)+".ipv6Addresses", j), address)
			}
		}
	}
	each(controlPlanePath, c.ControlPlane.Hosts)
	each(workersPath, c.StaticWorkers.Hosts)
	if !slices.ContainsFunc(c.ControlPlane.Hosts, func(h HostConfig) bool {
		return h.PublicAddress == c.APIEndpoint.Host
	}) {
		check("apiEndpoint.host", c.APIEndpoint.Host)
	}
}

func (f *findings) nodePorts(r string) {
	from, to, ok := strings.Cut(r, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	switch {
	case !ok || err1 != nil || err2 != nil:
		f.errorf(nodePortRangePath, "use two ports, such as 30000-32767", "%q is not a port range", r)
	case first < 1 || last > lastPort || first > last:
		f.errorf(nodePortRangePath, "use two ports, the lower one first", "%q is not a range between 1 and %d", r,
			lastPort)
	case first < reservedPorts:
		f.warnf(nodePortRangePath, "", "%q includes ports below %d, which host services use", r, reservedPorts)
	}
	if err1 != nil || err2 != nil {
		return
	}
	own := slices.DeleteFunc(componentPorts(), func(port int) bool { return port < first || port > last })
	if len(own) > 0 {
		f.warnf(nodePortRangePath, "a Service with such a node port would receive the connections of the component",
			"%q includes ports of Kubernetes components: %s", r, strings.Trim(fmt.Sprint(own), "[]"))
	}
}

// componentPorts returns the ports that hosts use among each other: of etcd, the API server and the kubelet.
func componentPorts() []int { return []int{2379, 2380, 6443, 10250} }

// ipFamily checks the family, and that each Node has an address of every family. The manifest must list them: kubeone
// does not ask the hosts, because a host could claim another host's address.
func (f *findings) ipFamily(c *KubeOneCluster) {
	family := c.ClusterNetwork.IPFamily
	switch family {
	case ipFamilyIPv4:
	case ipFamilyDualStack:
		f.dualStackCNI(*c.ClusterNetwork.CNI)
	case ipFamilyIPv6, ipFamilyIPv6First:
		f.errorf(ipFamilyPath, "use IPv4+IPv6; such a cluster also serves IPv6", "%q is not supported: kubeadm then "+
			"runs etcd, the scheduler and the controller manager at ::1, but kubeone reaches them at 127.0.0.1", family)
		return
	default:
		f.errorf(ipFamilyPath, "use IPv4 or IPv4+IPv6", "%q is not an IP family", family)
		return
	}
	each := func(path string, hosts []HostConfig) {
		for i, h := range hosts {
			if ip, err := netip.ParseAddr(h.PrivateAddress); err == nil && ip.Is6() && !ip.Is4In6() {
				f.errorf(Item(path, i)+".privateAddress", "set the IPv4 address of the host",
					"%s is an IPv6 address, but cluster nodes need an IPv4 address", h.PrivateAddress)
			}
			if family == ipFamilyDualStack && len(h.IPv6Addresses) == 0 {
				f.missing(Item(path, i)+".ipv6Addresses",
					"set the IPv6 address of the host; the Node of a dual-stack cluster has both addresses")
			}
		}
	}
	each(controlPlanePath, c.ControlPlane.Hosts)
	each(workersPath, c.StaticWorkers.Hosts)
}

// dualStackCNI checks that the network plugin can give pods IPv6 addresses.
func (f *findings) dualStackCNI(c CNI) {
	if c.Canal != nil {
		f.errorf(ipFamilyPath, "set clusterNetwork.cni to flannel or external", "canal supports only IPv4 here")
	}
}
