package match

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// An etcd member is not taken for another host's, and is found if its address is spelled differently.
func TestWhichHostAMemberIsOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host  desired.Host
		calls string // name of the host's Node
		peer  string
		is    bool
	}{
		"a worker that the manifest calls so": {
			desired.Host{Role: desired.Worker, Hostname: "cp-1"}, "cp-1", "https://10.9.9.9:2380", true,
		},
		"a worker that calls itself so": {
			desired.Host{Role: desired.Worker}, "cp-1", "https://10.9.9.9:2380", false,
		},
		"an IPv4 address as IPv6 spells it": {
			desired.Host{Role: desired.ControlPlane, PrivateAddress: "10.0.0.1"}, "", "https://[::ffff:10.0.0.1]:2380",
			true,
		},
		"a URL without an address, and a host without one": {
			desired.Host{Role: desired.ControlPlane, PublicAddress: "192.0.2.1"}, "", "unix:member.sock", false,
		},
	} {
		m := Member([]observed.Member{{ID: "1", Name: "cp-1", PeerURLs: []string{c.peer}}}, &c.host, c.calls)
		if (m != nil) != c.is {
			t.Errorf("%s: it is its member: %t, want %t", name, m != nil, c.is)
		}
	}
}
