package match

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestNodesAndMembersAreFoundByNameOrAddress(t *testing.T) {
	t.Parallel()
	w := desired.Host{
		ID: "192.0.2.1", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1", IPv6Addresses: []string{"fd00::1"},
		Role: desired.ControlPlane,
	}
	named, silent := observed.Host{Hostname: "CP-1"}, observed.Host{}
	nodes := []observed.Node{{Name: "other"}, {Name: "cp-1", Addresses: []string{"10.0.0.1"}, ControlPlane: true}}
	for name, is := range map[string]*observed.Host{"by name": &named, "by address": &silent} {
		if n := Node(nodes, &w, is); n == nil || n.Name != "cp-1" {
			t.Errorf("%s: found %v", name, n)
		}
	}
	if n := Node(nodes, &w, &observed.Host{Hostname: "cp-9"}); n != nil {
		t.Errorf("a host that says another name is not %s", n.Name)
	}
	for _, peer := range []string{"https://10.0.0.1:2380", "https://[fd00:0::1]:2380", "https://192.0.2.1:2380"} {
		members := []observed.Member{
			{ID: "1", PeerURLs: []string{"https://10.0.0.9:2380"}},
			{ID: "2", PeerURLs: []string{peer}},
		}
		if m := Member(members, &w, "cp-1"); m == nil || m.ID != "2" {
			t.Errorf("peer %s: found %v", peer, m)
		}
	}
	if m := Member([]observed.Member{{ID: "1", PeerURLs: []string{"::bad::"}}}, &w, ""); m != nil {
		t.Errorf("found %v", m)
	}
}

func TestOfTwoMembersWithOneNameTheHostsOwnIsFound(t *testing.T) {
	t.Parallel()
	h := desired.Host{ID: "192.0.2.1", PrivateAddress: "10.0.0.1", Hostname: "CP-1", Role: desired.ControlPlane}
	old := observed.Member{ID: "1", Name: "cp-1", PeerURLs: []string{"https://10.9.9.9:2380"}}
	elsewhere := observed.Member{
		ID:       "2",
		Name:     "cp-1",
		PeerURLs: []string{"https://10.9.9.8:2380"},
		Healthy:  observed.Yes,
	}
	here := observed.Member{ID: "3", Name: "cp-1", PeerURLs: []string{"https://10.0.0.1:2380"}}
	for want, members := range map[string][]observed.Member{
		"1": {old},
		"2": {old, elsewhere},
		"3": {old, elsewhere, here},
	} {
		if i := MemberIndex(members, h, NodeName(&h, &observed.Host{}, nil)); i < 0 || members[i].ID != want {
			t.Errorf("found %d in %v, want %s", i, members, want)
		}
	}
	if i := MemberIndex([]observed.Member{old}, h, "cp-2"); i != -1 {
		t.Errorf("found %d for another name", i)
	}
}

func TestNameOfANode(t *testing.T) {
	t.Parallel()
	node := observed.Node{Name: "by-address"}
	for want, c := range map[string]struct {
		wanted, own string
		node        *observed.Node
	}{
		"manifest": {"Manifest", "own", &node}, "own": {"", "Own", &node}, "by-address": {"", "", &node},
		"": {"", "", nil},
	} {
		if got := NodeName(&desired.Host{Hostname: c.wanted}, &observed.Host{Hostname: c.own}, c.node); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if n := Node([]observed.Node{{Name: "other", Addresses: []string{""}}}, &desired.Host{},
		&observed.Host{}); n != nil {
		t.Errorf("found %v", n)
	}
}

// TestAHostDoesNotChooseItsNode: a host chooses its name, but not the addresses of Nodes.
func TestAHostDoesNotChooseItsNode(t *testing.T) {
	t.Parallel()
	want := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1", Role: desired.Worker}
	named := want
	named.Hostname = "victim"
	for name, c := range map[string]struct {
		want      desired.Host
		addresses []string
		owns      bool
	}{
		"its address":                    {want, []string{"victim", "10.0.0.1"}, true},
		"another host's address":         {want, []string{"victim", "10.0.0.2"}, false},
		"no address yet":                 {want, []string{"victim"}, true},
		"the manifest gives it the name": {named, []string{"10.0.0.2"}, true},
	} {
		nodes := []observed.Node{{Name: "victim", Addresses: c.addresses}}
		if n := Node(nodes, &c.want, &observed.Host{Hostname: "victim"}); (n != nil) != c.owns {
			t.Errorf("%s: the Node is its own: %t, want %t", name, n != nil, c.owns)
		}
	}
	members := []observed.Member{{ID: "1", Name: "victim", PeerURLs: []string{"https://10.0.0.2:2380"}}}
	if m := Member(members, &want, "victim"); m != nil {
		t.Errorf("a worker has chosen member %+v", m)
	}
}

// A kubelet can write the addresses of others into its own Node. That makes it the Node of no other host.
func TestANodeWithAnothersAddressIsNotTheOthers(t *testing.T) {
	t.Parallel()
	silent := &observed.Host{}
	cp := desired.Host{ID: "192.0.2.1", PrivateAddress: "10.0.0.1", Role: desired.ControlPlane}
	worker := desired.Host{ID: "192.0.2.2", PrivateAddress: "10.0.0.2", Role: desired.Worker}
	liar := observed.Node{Name: "app-1", Addresses: []string{"10.0.0.1", "10.0.0.2"}}
	own := observed.Node{Name: "cp-1", Addresses: []string{"10.0.0.1"}, ControlPlane: true}
	workers := observed.Node{Name: "w-1", Addresses: []string{"10.0.0.2"}}
	other := observed.Node{Name: "cp-2", Addresses: []string{"10.0.0.2"}, ControlPlane: true}
	for name, c := range map[string]struct {
		nodes []observed.Node
		want  *desired.Host
		found string
	}{
		"a control-plane host, with its Node":   {[]observed.Node{liar, own}, &cp, "cp-1"},
		"a control-plane host, without one":     {[]observed.Node{liar}, &cp, ""},
		"a worker, with its Node":               {[]observed.Node{liar, workers}, &worker, ""},
		"a worker, and no false claims":         {[]observed.Node{own, workers}, &worker, "w-1"},
		"a worker that is of the control plane": {[]observed.Node{liar, other}, &worker, "cp-2"},
	} {
		got := ""
		if n := Node(c.nodes, c.want, silent); n != nil {
			got = n.Name
		}
		if got != c.found {
			t.Errorf("%s: found %q, want %q", name, got, c.found)
		}
	}
}
