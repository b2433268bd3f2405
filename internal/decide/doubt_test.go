package decide

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// Workers that cannot be told apart are left alone, and stop no other host. A doubt about a control-plane host, or
// about a role, stops everything: it does not rest on the worker's claim alone.
func TestADoubtAboutWorkersIsTheirsAlone(t *testing.T) {
	t.Parallel()
	const cp1, w1, w2 = "192.0.0.1", "192.0.1.1", "192.0.1.2"
	for name, c := range map[string]struct {
		doubt   identity.Contradiction
		unclear []string // nil: everything stops
	}{
		"two machines say that they are one, and neither is at its place": {identity.Contradiction{
			Kind: identity.SameID, Host: w1, Says: w1, Address: "192.0.2.8", OtherAddress: "192.0.2.9",
		}, []string{w1}},
		"another machine says that it is one that is at its place": {identity.Contradiction{
			Kind: identity.SameID, Host: w1, Says: w1, Address: w1, OtherAddress: w2, Home: true,
		}, []string{w2}},
		"a control-plane host says that it is a worker that is at its place": {identity.Contradiction{
			Kind: identity.SameID, Host: w1, Says: w1, Address: w1, OtherAddress: cp1, Home: true,
		}, nil},
		"one worker is at another one's place": {identity.Contradiction{
			Kind: identity.Displaced, Host: w1, Says: w2, Address: w1, OtherAddress: "192.0.2.9",
		}, []string{w1, w2}},
		"a control-plane host is at a worker's place": {identity.Contradiction{
			Kind: identity.Displaced, Host: w1, Says: cp1, Address: w1, OtherAddress: "192.0.2.9",
		}, nil},
		"the name of its Node is another one's, whatever that is": {identity.Contradiction{
			Kind: identity.OtherHostname, Host: w1, Wants: "w-1", Says: cp1,
		}, []string{w1}},
		"it has joined as another role": {identity.Contradiction{
			Kind: identity.OtherRole, Host: w1, Wants: "worker", Says: "control-plane",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2)
			in.Want.ControlPlane[1].PublicAddress = "" // that of no machine
			in.Contradictions = []identity.Contradiction{c.doubt}
			d := Decide(in)
			if stops := d.Route == fsm.Error; stops != (c.unclear == nil) {
				t.Fatalf("route %s, problems %v", d.Route, d.Problems)
			}
			if c.unclear == nil {
				return
			}
			var unclear []string
			for _, id := range slices.Sorted(maps.Keys(d.Hosts)) {
				if d.Hosts[id].Condition == condition.Unclear {
					unclear = append(unclear, id)
				}
			}
			if diff := cmp.Diff(c.unclear, unclear); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// If several hosts claim one name, the one with the best right keeps it. A control-plane host with an unapproved key
// has no right, and if neither of two workers has one, both are refused.
func TestWhoKeepsANameThatTwoHostsHave(t *testing.T) {
	t.Parallel()
	const cp1, w1, w2 = "192.0.0.1", "192.0.1.1", "192.0.1.2"
	for name, c := range map[string]struct {
		first, second string // the hosts that claim the name
		contact       string // the key of the first one, if it is not approved
		node          bool   // a Node with that name exists, with the first one's address
		unclear       []string
	}{
		"two new workers":                         {w1, w2, "", false, []string{w1, w2}},
		"a worker whose Node has the name":        {w1, w2, "", true, []string{w2}},
		"a control-plane host":                    {cp1, w2, "", false, []string{w2}},
		"a control-plane host with a strange key": {cp1, w2, "SHA256:new", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := *clusterWithoutHostnames()
			in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool {
				return n.Name == "cp-1" || n.Name == "w-1" || n.Name == "w-2"
			})
			for _, id := range []string{c.first, c.second} {
				h, _ := in.Want.Host(id)
				is := in.Is.Hosts[id]
				if h.Role == desired.Worker && !(c.node && id == c.first) {
					is = decidetest.Bare(h)
				}
				is.Hostname = "one"
				if id == c.first {
					is.FirstContact = c.contact
				}
				in.Is.Hosts[id] = is
			}
			if c.node {
				h, _ := in.Want.Host(c.first)
				h.Hostname = "one"
				in.Is.API.Nodes = append(in.Is.API.Nodes, decidetest.ReadyNode(h))
			}
			d := Decide(in)
			var unclear []string
			for _, id := range slices.Sorted(maps.Keys(d.Hosts)) {
				a := d.Hosts[id]
				if a.Condition == condition.Unclear && problem.Has(a.Reasons, problem.HostNameDuplicate) {
					unclear = append(unclear, id)
				}
			}
			if diff := cmp.Diff(c.unclear, unclear); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A host returns to its pool when nothing of the cluster is left on it. An installed kubelet counts.
func TestAHostWithAKubeletIsNotReturned(t *testing.T) {
	t.Parallel()
	for installed, want := range map[bool]fsm.Route{false: fsm.Nothing, true: fsm.Return} {
		in := aWorker().makeBare().removeNode().changeHost(func(is *observed.Host) { is.Kubelet.Installed = installed })
		if d := Worker(in); d.Route != want {
			t.Errorf("a kubelet is installed: %t: route %s, want %s", installed, d.Route, want)
		}
	}
}
