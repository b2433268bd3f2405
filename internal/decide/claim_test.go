package decide

import (
	"cmp"
	"slices"
	"testing"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// clusterWithForeignNodes returns a healthy cluster whose manifest names no host, with Nodes of no host in it: a
// Machine's, a manually joined one, and one of a control-plane host that the manifest no longer has.
func clusterWithForeignNodes() *Input {
	in := clusterWithoutHostnames()
	in.Want.Endpoint.Host = "api.example.com"
	in.Want.Network.DNSDomain = "cluster.local"
	in.Is.API.Nodes = append(in.Is.API.Nodes,
		observed.Node{
			Name: "pool-7", Addresses: []string{"10.0.2.7"}, Ready: observed.Yes,
			Labels: map[string]string{desired.OwnerLabel: "uid-7"},
		},
		observed.Node{Name: "by-hand", Addresses: []string{"10.0.2.8"}, Ready: observed.Yes},
		observed.Node{Name: "orphan", Addresses: []string{"10.0.2.9"}, Ready: observed.Yes, ControlPlane: true})
	in.Is.API.Record.Nodes = map[string]string{"192.0.1.1": "w-1", "192.0.1.2": "w-2"}
	return in
}

const liar = "192.0.1.1"

// claimStates are other claims of the worker that claims a name.
func claimStates() map[string]func(in *Input) {
	return map[string]func(in *Input){
		"healthy": func(*Input) {},
		"empty":   func(in *Input) { in.emptyHosts(liar) },
		"partial": func(in *Input) {
			in.changeObserved(liar,
				func(h *observed.Host) { h.Marker.Complete = false })
		},
		"regenerable": func(in *Input) {
			in.changeObserved(liar,
				func(h *observed.Host) { h.KubeletConf = observed.No })
		},
	}
}

// A worker that claims another's name gains nothing, and stops no work on others.
func TestAClaimedNameGivesAWorkerNothing(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]problem.Code{
		"pool-7": problem.HostNameTaken, "by-hand": problem.HostNameTaken, "orphan": problem.HostNameTaken,
		"api.example.com": problem.HostNameTaken, "kubernetes.default.svc": problem.HostNameTaken,
		"localhost": problem.HostNameTaken, "192.0.0.1": problem.HostNameTaken, "POOL-7": problem.HostNameTaken,
		"cp-1": problem.HostNameDuplicate, "w-2": problem.HostNameDuplicate, "new-name": problem.HostRenamed,
	} {
		for state, is := range claimStates() {
			in := clusterWithForeignNodes()
			is(in)
			in.changeObserved(liar, func(h *observed.Host) { h.Hostname = name })
			// Work on another worker.
			in.changeObserved("192.0.1.2", func(h *observed.Host) { h.Kubelet.Active = false })
			d := Decide(*in)
			a := d.Hosts[liar]
			if a.Condition != condition.Unclear || a.Reasons[0].Code != code || a.Node != "" {
				t.Errorf("%s as %s: %+v", state, name, a)
			}
			if d.Route == fsm.Error || len(d.Restarts["192.0.1.2"]) == 0 {
				t.Errorf("%s as %s: route %s, %+v", state, name, d.Route, d.Problems)
			}
			if len(d.Joins)+len(d.Metadata)+len(d.Prepare)+len(d.Regenerations) > 0 {
				t.Errorf("%s as %s: %+v", state, name, d)
			}
			if known := NodeNames(*in)[liar]; known.Name != "" {
				t.Errorf("%s as %s: it is called %+v", state, name, known)
			}
		}
	}
}

// A host's own name is accepted if it is free, or known to be the host's.
func TestAnOwnNameIsGoodWhereItIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(in *Input)
		says   string
		known  bool
	}{
		"as recorded": {func(*Input) {}, "W-1", true},
		"recorded, its Node at an old address": {func(in *Input) {
			for i := range in.Is.API.Nodes {
				if n := &in.Is.API.Nodes[i]; n.Name == "w-1" {
					n.Addresses = []string{"10.0.9.9"}
				}
			}
		}, "w-1", true},
		"its Node, without a record": {func(in *Input) { in.Is.API.Record = nil }, "w-1", true},
		"a new machine in place of one whose Node is gone": {func(in *Input) {
			in.emptyHosts(liar)
			in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == "w-1" })
		}, "new-name", false},
	} {
		in := clusterWithForeignNodes()
		c.change(in)
		in.changeObserved(liar, func(h *observed.Host) { h.Hostname = c.says })
		got := NodeNames(*in)[liar]
		if got.Known != c.known || got.Name == "" {
			t.Errorf("%s: %+v, %+v", name, got, Decide(*in).Hosts[liar].Reasons)
		}
	}
}

// The Node of a machine with another machine ID is not the host's; a new machine replaces it.
func TestANodeOfAnotherMachineAtTheAddress(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"empty": true, "partial": false, "regenerable": false} {
		in := clusterWithForeignNodes()
		claimStates()[state](in)
		in.Is.API.Record = nil
		for i := range in.Is.API.Nodes {
			in.Is.API.Nodes[i].MachineID = "another"
		}
		if got := NodeNames(*in)[liar].Name != ""; got != want {
			t.Errorf("%s: may be its Node: %v", state, got)
		}
	}
}

// A host with the ID or the name of a silent worker, at another address, gets no credentials of that worker's Node.
func TestAWorkerAtAnothersAddressGetsNoCredentials(t *testing.T) {
	t.Parallel()
	for state, is := range claimStates() {
		in := healthyCluster(3, 2)
		is(&in)
		in.Moved = []identity.Move{{Host: liar, Address: liar, Found: "192.0.1.2"}}
		a := Decide(in).Hosts[liar]
		left := a.Condition == condition.Unclear && a.Reasons[0].Code == problem.HostMoved
		if left != (state != "healthy") {
			t.Errorf("%s: %+v", state, a)
		}
	}
}

// A control-plane host is trusted with more, so its claim stops everything until an operator has judged it.
func TestAClaimOfAControlPlaneHostStopsEverything(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orphan", "api.example.com", "pool-7", "kubernetes"} {
		in := clusterWithForeignNodes()
		in.emptyHosts("192.0.0.3")
		in.changeObserved("192.0.0.3", func(h *observed.Host) { h.Hostname = name })
		in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{
			ID: "9", Name: "orphan", Healthy: observed.Yes, PeerURLs: []string{"https://10.0.2.9:2380"},
		})
		d := Decide(*in)
		if d.Route != fsm.Error || !problem.Has(d.Problems, problem.HostNameTaken) {
			t.Errorf("%s: %s, %+v", name, d.Route, d.Problems)
		}
		if !slices.ContainsFunc(d.Warnings, func(p problem.Problem) bool {
			return p.Code == problem.OrphanMember && p.Parameters["member"] == "orphan (9)"
		}) {
			t.Errorf("%s: the orphan's member is taken for the host's: %+v", name, d.Warnings)
		}
	}
}

// Before there is a cluster, a reserved name stops the installation.
func TestNoClusterBeginsWithAReservedName(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"192.0.0.1", "192.0.1.1"} {
		in := bareHosts(1)
		in.Want.Endpoint.Host = "api.example.com"
		for _, hosts := range [][]desired.Host{in.Want.ControlPlane, in.Want.Workers} {
			for i := range hosts {
				hosts[i].Hostname = ""
			}
		}
		in.changeObserved(id, func(h *observed.Host) { h.Hostname = "api.example.com" })
		if d := Decide(in); d.Route != fsm.Error || !problem.Has(d.Problems, problem.HostNameTaken) {
			t.Errorf("%s: %s, %+v", id, d.Route, d.Problems)
		}
	}
}

// A worker with the name of a silent control-plane host, whose Node has that host's address, is not taken for it: it
// would get a certificate for the address, and replace the other's Node.
func TestANodeWithTheAddressOfASilentHost(t *testing.T) {
	t.Parallel()
	in := clusterWithForeignNodes()
	const silent = "192.0.0.2"
	in.Is.Hosts[silent] = decidetest.Silent(in.Want.ControlPlane[1])
	in.changeObserved(liar, func(h *observed.Host) { h.Hostname = "cp-2" })
	var nodes []observed.Node
	for _, n := range in.Is.API.Nodes {
		if n.Name == "w-1" {
			n.Name, n.Addresses = "app-1", append(n.Addresses, in.Want.ControlPlane[1].PrivateAddress)
			nodes = append([]observed.Node{n}, nodes...) // the API lists Nodes by name
			continue
		}
		nodes = append(nodes, n)
	}
	in.Is.API.Nodes, in.Is.API.Record.Nodes = nodes, map[string]string{liar: "app-1", silent: "cp-2"}
	r := identity.Match(in.Want, in.Is)
	in.Want, in.Is, in.Contradictions = r.Want, r.Is, r.Contradictions
	if got := NodeNames(*in)[silent].Name; got == "app-1" {
		t.Errorf("the silent host is taken for %s", got)
	}
	if a := Decide(*in).Hosts[silent]; a.Node != "cp-2" {
		t.Errorf("%+v", a)
	}
}

// A worker that claims to be a silent control-plane host is left alone: it would get the cluster's keys. Everything
// else continues.
func TestAWorkerDoesNotBecomeASilentControlPlaneHost(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"cp-b", ""} { // the manifest gives the host an ID, or only a name
		in := healthyCluster(3, 2)
		host := &in.Want.ControlPlane[1]
		delete(in.Is.Hosts, host.ID)
		host.ID, host.HasOwnID = cmp.Or(id, host.ID), id != ""
		in.Is.Hosts[host.ID] = decidetest.Silent(*host)
		in.Is.Etcd.Members = slices.Delete(in.Is.Etcd.Members, 1, 2) // an earlier run has removed the dead member
		in.changeObserved(liar, func(h *observed.Host) {
			h.Marker = &observed.Marker{Cluster: in.Want.Name, Role: "control-plane", ID: id, Node: "cp-2"}
		})
		in.changeObserved("192.0.1.2", func(h *observed.Host) { h.Kubelet.Active = false })
		r := identity.Match(in.Want, in.Is)
		in.Want, in.Is, in.Contradictions = r.Want, r.Is, r.Contradictions
		d := Decide(in)
		if len(d.Joins) > 0 || len(d.Restarts["192.0.1.2"]) == 0 {
			t.Errorf("%q: %s, joins %v, restarts %v, %v", id, d.Route, d.Joins, d.Restarts, d.Problems)
		}
		if a := d.Hosts[liar]; a.Condition != condition.Unclear || a.Reasons[0].Code != problem.HostIDDuplicate {
			t.Errorf("%q: %+v", id, a)
		}
	}
}

// The deleted host's control-plane Node is removed, whatever name a worker claims.
func TestAClaimKeepsNoStaleNode(t *testing.T) {
	t.Parallel()
	in := clusterWithForeignNodes()
	for i := range in.Is.API.Nodes {
		if n := &in.Is.API.Nodes[i]; n.Name == "orphan" {
			n.Ready = observed.No
		}
	}
	in.changeObserved(liar, func(h *observed.Host) { h.Hostname = "orphan" })
	if d := Decide(*in); !slices.Contains(d.StaleNodes, "orphan") {
		t.Errorf("%s: %v", d.Route, d.StaleNodes)
	}
}
