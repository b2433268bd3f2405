package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The load balancer, control planes and workers have fixed ranges of last bytes in a lab's network.
const (
	gatewayByte      = 1
	loadBalancerByte = 10
	controlPlaneByte = 11 // and the next 39
	workerByte       = 51 // and the next 199
)

// freeSubnets returns the 172.31.x.0/24 networks that overlap no used one, lowest first.
func freeSubnets(used []netip.Prefix) []netip.Prefix {
	var free []netip.Prefix
	for third := 1; third < 255; third++ {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(third), 0}), 24)
		if !overlapsAny(candidate, used) {
			free = append(free, candidate)
		}
	}
	return free
}

func overlapsAny(candidate netip.Prefix, used []netip.Prefix) bool {
	for _, prefix := range used {
		if prefix.Overlaps(candidate) {
			return true
		}
	}
	return false
}

// usedSubnets returns this machine's IPv4 routes, without the default route, and docker's networks.
func usedSubnets(ctx context.Context) ([]netip.Prefix, error) {
	routes, err := runOutput(exec.CommandContext(ctx, "ip", "-4", "route", "show", "table", "all"))
	if err != nil {
		return nil, fmt.Errorf("find a free subnet: %w", err)
	}
	networks, err := runDocker(ctx, "network", "ls", "--quiet", "--filter", "driver=bridge")
	if err != nil {
		return nil, fmt.Errorf("find a free subnet: %w", err)
	}
	used := parsePrefixes(routes)
	for _, id := range strings.Fields(networks) {
		// Another process may have removed a network meanwhile. Ignore it.
		if subnets, err := runDocker(ctx, "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}",
			id); err == nil {
			used = append(used, parsePrefixes(subnets)...)
		}
	}
	return used, nil
}

// parsePrefixes returns the addresses and prefixes in a text. An address counts as a network of one.
func parsePrefixes(text string) []netip.Prefix {
	var found []netip.Prefix
	for _, word := range strings.Fields(text) {
		if prefix, err := netip.ParsePrefix(word); err == nil {
			found = append(found, prefix)
		} else if address, err := netip.ParseAddr(word); err == nil && address.Is4() {
			found = append(found, netip.PrefixFrom(address, 32))
		}
	}
	return found
}

// networkName returns a name that was never used: a network of an earlier lab with that name may still exist.
func networkName(lab string) string {
	return "kubeone-lab-" + lab + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// createNetwork creates a bridge network for the lab on the first free subnet. If another process takes that subnet
// first, it tries the next one. With dualStack the network also has the subnet of ipv6Subnet.
func createNetwork(ctx context.Context, name string, labels []string, dualStack bool) (netip.Prefix, error) {
	used, err := usedSubnets(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	var last error
	for _, subnet := range freeSubnets(used) {
		gateway := addressAt(subnet, gatewayByte)
		args := append([]string{"network", "create", "--driver", "bridge", "--subnet", subnet.String(), "--gateway",
			gateway}, labels...)
		if dualStack {
			second := ipv6Subnet(subnet)
			args = append(args, "--ipv6", "--subnet", second.String(), "--gateway", ipv6AddressAt(second, gatewayByte))
		}
		_, last = runDocker(ctx, append(args, name)...)
		if last == nil {
			return subnet, nil
		}
		if !strings.Contains(last.Error(), "verlap") {
			break
		}
	}
	if last == nil {
		last = fmt.Errorf("no 172.31.x.0/24 subnet is free")
	}
	return netip.Prefix{}, fmt.Errorf("create network %s: %w", name, last)
}

// addressAt returns the address in the subnet with the given last byte.
func addressAt(subnet netip.Prefix, last int) string {
	bytes := subnet.Addr().As4()
	bytes[3] = byte(last)
	return netip.AddrFrom4(bytes).String()
}

// ipv6Subnet returns the IPv6 subnet of a lab with the given IPv4 subnet: fd00:172:31:7::/64 for 172.31.7.0/24.
func ipv6Subnet(subnet netip.Prefix) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:172:31:%d::/64", subnet.Addr().As4()[2]))
}

// ipv6AddressAt returns the address in the IPv6 subnet with the given last byte.
func ipv6AddressAt(subnet netip.Prefix, last int) string {
	bytes := subnet.Addr().As16()
	bytes[15] = byte(last)
	return netip.AddrFrom16(bytes).String()
}
