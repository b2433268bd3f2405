package fleet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFreeSubnetsAvoidRoutesOfAnySize(t *testing.T) {
	routes := `default via 172.31.4.1 dev eth0
172.31.1.0/24 dev br-1 proto kernel scope link src 172.31.1.1
172.31.2.128/25 dev br-2
local 172.31.3.7 dev lo table local
172.17.0.0/16 dev docker0`
	free := freeSubnets(parsePrefixes(routes))
	if got, want := free[0].String(), "172.31.5.0/24"; got != want {
		t.Errorf("the first free subnet is %s, want %s: 1 to 4 are in use", got, want)
	}
	if all := freeSubnets([]netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}); len(all) != 0 {
		t.Errorf("%d subnets are free within a used network, want none", len(all))
	}
}

func TestLabAddresses(t *testing.T) {
	lab := &Lab{Name: "x"}
	var got []string
	for _, host := range lab.layOut(netip.MustParsePrefix("172.31.9.0/24"),
		Options{ControlPlanes: 3, Workers: 1, SpareWorkers: 1}) {
		line := host.Name + " " + host.Address
		if host.Spare {
			line += " spare"
		}
		got = append(got, line)
	}
	want := []string{
		"x-lb 172.31.9.10", "x-cp-1 172.31.9.11", "x-cp-2 172.31.9.12", "x-cp-3 172.31.9.13",
		"x-worker-1 172.31.9.51", "x-worker-2 172.31.9.52 spare",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNameserversSkipLocalOnes(t *testing.T) {
	for text, want := range map[string][]string{
		"nameserver 127.0.0.53\noptions edns0\n":             {"10.0.0.1"},
		"search x\nnameserver 9.9.9.9\nnameserver ::1\n":     {"9.9.9.9"},
		"nameserver 127.0.0.1\nnameserver 192.168.1.1 # x\n": {"192.168.1.1"},
		"": {"10.0.0.1"},
	} {
		if diff := cmp.Diff(want, reachableNameservers(text, "10.0.0.1")); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestOtherEnd(t *testing.T) {
	inner := "37: eth0@if38: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP"
	links := "1: lo: <LOOPBACK,UP>\n3: veth0aa@if12: <UP>\n38: vethb1c2@if37: <BROADCAST,UP> master br-1\n"
	got, err := otherEnd(inner, links)
	if err != nil || got != "vethb1c2" {
		t.Errorf("otherEnd = %q, %v; want vethb1c2", got, err)
	}
	if _, err := otherEnd(inner, "8: vethb1c2@if37: <UP>"); err == nil {
		t.Error("otherEnd found a link that is not there")
	}
}
