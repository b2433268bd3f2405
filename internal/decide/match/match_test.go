package match

import (
	"testing"

	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

func TestNodesAndMembersAreFoundByNameOrAddress(t *testing.T) {
	t.Parallel()
	w := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1", IPv6Addresses: []string{"fd00::1"}, Role: desired.ControlPlane}
	named, silent := observed.Host{Hostname: "CP-1"}, observed.Host{}
	nodes := []observed.Node{{Name: "other"}, {Name: "cp-1", Addresses: []string{"10.0.0.1"}}}
	for name, is := range map[string]*observed.Host{"by name": &named, "by address": &silent} {
		if n := Node(nodes, &w, is); n == nil || n.Name != "cp-1" {
			t.Errorf("%s: found %v", name, n)
		}
	}
	if n := Node(nodes, &w, &observed.Host{Hostname: "cp-9"}); n != nil {
		t.Errorf("a host that says another name is not %s", n.Name)
	}
	for _, peer := range []string{"https://10.0.0.1:2380", "https://[fd00:0::1]:2380", "https://192.0.2.1:2380"} {
		members := []observed.Member{{ID: "1", PeerURLs: []string{"https://10.0.0.9:2380"}}, {ID: "2", PeerURLs: []string{peer}}}
		if m := Member(members, &w, "cp-1"); m == nil || m.ID != "2" {
			t.Errorf("peer %s: found %v", peer, m)
		}
	}
	if m := Member([]observed.Member{{ID: "1", PeerURLs: []string{"::bad::"}}}, &w, ""); m != nil {
		t.Errorf("found %v", m)
	}
}
