package v1beta2

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of networks: kube-apiserver allows at most 2^20 Services, kube-controller-manager divides a pod subnet among
// at most 2^16 nodes, and CoreDNS has the tenth address of the service subnet.
const (
	widestServiceSubnet  = 12
	narrowestServices    = 28
	mostNodeBits         = 16
	narrowestNodeSubnet  = 28
	ipFamilyIPv4         = "IPv4"
	ipFamilyDualStack    = "IPv4+IPv6"
	serviceSubnetPath    = "clusterNetwork.serviceSubnet"
	podSubnetPath        = "clusterNetwork.podSubnet"
	nodeMaskPath         = "clusterNetwork.nodeCIDRMaskSizeIPv4"
	nodePortRangePath    = "clusterNetwork.nodePortRange"
	subnetHint           = "use a subnet such as 10.244.0.0/16"
	reservedPorts        = 1024
	lastPort             = 65535
	overlapHint          = "use subnets that are not used elsewhere in the network of the hosts"
	addressInSubnetHint  = "use another subnet; pod and Service addresses must not overlap with hosts"
	serviceDomainExample = "use a DNS domain such as cluster.local"
)

func (f *findings) network(c *KubeOneCluster) {
	n := c.ClusterNetwork
	pods, podsOK := f.subnet(podSubnetPath, n.PodSubnet)
	services, servicesOK := f.subnet(serviceSubnetPath, n.ServiceSubnet)
	if servicesOK && (services.Bits() < widestServiceSubnet || services.Bits() > narrowestServices) {
		f.errorf(serviceSubnetPath, "", "%s must have a prefix length from /%d to /%d", services, widestServiceSubnet,
			narrowestServices)
	}
	if podsOK {
		f.nodeMask(c, pods)
		f.outside(c, "pod", pods)
	}
	if servicesOK {
		f.outside(c, "service", services)
	}
	if podsOK && servicesOK && pods.Overlaps(services) {
		f.errorf(podSubnetPath, overlapHint, "%s overlaps the service subnet, %s", pods, services)
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

// subnet parses an IPv4 network. The host bits must be zero: 10.244.0.1/16 is usually a mistake.
func (f *findings) subnet(path, cidr string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil:
		f.errorf(path, subnetHint, "%q is not a valid subnet", cidr)
	case !p.Addr().Is4():
		f.errorf(path, subnetHint, "%q is not an IPv4 subnet", cidr)
	case p != p.Masked():
		f.errorf(path, fmt.Sprintf("did you mean %s?", p.Masked()), "%q is an address in a subnet, not a subnet",
			cidr)
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

// nodeMask checks that the pod subnet has room for all hosts.
func (f *findings) nodeMask(c *KubeOneCluster, pods netip.Prefix) {
	mask, hosts := *c.ClusterNetwork.NodeCIDRMaskSizeIPv4, len(c.ControlPlane.Hosts)+len(c.StaticWorkers.Hosts)
	bits := mask - pods.Bits()
	switch {
	case mask > narrowestNodeSubnet || bits < 0:
		f.errorf(nodeMaskPath, "", "/%d is not between the /%d of the pod subnet and /%d", mask, pods.Bits(),
			narrowestNodeSubnet)
	case bits > mostNodeBits:
		f.errorf(nodeMaskPath, fmt.Sprintf("use at most %d, or a smaller pod subnet", pods.Bits()+mostNodeBits),
			"/%d is more than %d bits longer than the /%d of the pod subnet", mask, mostNodeBits, pods.Bits())
	case 1<<bits < hosts:
		f.errorf(podSubnetPath, "use a larger pod subnet, or a longer nodeCIDRMaskSizeIPv4",
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

// ipFamily checks the family, and that an IPv4 cluster's nodes have IPv4 addresses.
func (f *findings) ipFamily(c *KubeOneCluster) {
	family := c.ClusterNetwork.IPFamily
	if family != ipFamilyIPv4 && family != ipFamilyDualStack {
		f.errorf("clusterNetwork.ipFamily", "use IPv4 or IPv4+IPv6", "%q is not supported", family)
		return
	}
	each := func(path string, hosts []HostConfig) {
		for i, h := range hosts {
			if ip, err := netip.ParseAddr(h.PrivateAddress); err == nil && ip.Is6() && !ip.Is4In6() {
				f.errorf(Item(path, i)+".privateAddress", "set the IPv4 address of the host",
					"%s is an IPv6 address, but cluster nodes need an IPv4 address", h.PrivateAddress)
			}
		}
	}
	each(controlPlanePath, c.ControlPlane.Hosts)
	each(workersPath, c.StaticWorkers.Hosts)
}
