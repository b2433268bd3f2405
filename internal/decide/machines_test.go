package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Controllers are not deployed beside another program with the same kinds. Everything else continues.
func TestControllersAreNotDeployedWhereTheKindsAreAnothers(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	in.Is.API.Pool = &observed.Pool{Foreign: []string{"machines.cluster.k8s.io"}}
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("without controllers: route %s, %v", d.Route, d.Problems)
	}
	in.Want.Controllers = &desired.Controllers{}
	d := Decide(in)
	if d.Route != fsm.Error || len(d.Problems) != 1 ||
		d.Problems[0].String() != "DefinitionsOfOthers(names=machines.cluster.k8s.io)" {
		t.Errorf("with them: route %s, %v", d.Route, d.Problems)
	}
	in.Is.API.Pool.Foreign = nil
	if d := Decide(in); problem.Has(d.Problems, problem.DefinitionsOfOthers) {
		t.Errorf("of kubeone: %v", d.Problems)
	}
}

func TestNodesThatNoMachineHasAreNamed(t *testing.T) {
	t.Parallel()
	owned := map[string]string{desired.OwnerLabel: "uid"}
	host := func(state, machine string) []observed.PoolHost {
		return []observed.PoolHost{{Name: "pool-1", Address: "203.0.113.31", State: state, Machine: machine}}
	}
	for name, c := range map[string]struct {
		pool   *observed.Pool
		labels map[string]string
		want   []string
	}{
		"of a free Host":                      {&observed.Pool{Hosts: host("Free", "")}, nil, []string{"pool-1"}},
		"of a Host that has failed":           {&observed.Pool{Hosts: host("Failed", "")}, owned, []string{"pool-1"}},
		"of a claimed Host":                   {&observed.Pool{Hosts: host("Claimed", "ns/m")}, owned, nil},
		"of a joined Host":                    {&observed.Pool{Hosts: host("Joined", "ns/m")}, owned, nil},
		"of a returning Host":                 {&observed.Pool{Hosts: host("Returning", "ns/m")}, owned, nil},
		"of a Host that was removed by force": {&observed.Pool{}, owned, []string{"pool-1"}},
		"of another program's Machine": {
			&observed.Pool{Machines: []observed.Machine{{Namespace: "ns", Name: "m", Node: "pool-1"}}}, owned, nil,
		},
		"of no Machine":               {&observed.Pool{}, nil, nil},
		"where not all are known":     {&observed.Pool{More: true}, owned, nil},
		"where nothing can be read":   {&observed.Pool{Problem: "forbidden"}, owned, nil},
		"where there is no such kind": {nil, owned, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(1, 1)
			in.Is.API.Pool = c.pool
			node := observed.Node{Name: "pool-1", Ready: observed.Yes, Labels: c.labels}
			in.Is.API.Nodes = append(in.Is.API.Nodes, node)
			var got []string
			for _, p := range Decide(in).Warnings {
				if p.Code == problem.NodeWithoutMachine {
					got = append(got, p.Parameters["node"].(string))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A host in the manifest that is still in the pool gets no Node: the API server's policy refuses it.
func TestAHostThatIsStillInThePoolIsNamed(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	worker := in.Want.Workers[0].ID
	name := in.Is.API.Nodes[1].Name
	in.Is.API.Pool = &observed.Pool{Hosts: []observed.PoolHost{{Name: name, State: "Free"}}}
	warned := func() bool {
		return slices.ContainsFunc(Decide(in).Warnings, func(p problem.Problem) bool {
			return p.Code == problem.HostInPool && p.Host == worker && p.Parameters["name"] == name
		})
	}
	if warned() {
		t.Error("it has its Node")
	}
	in.emptyHosts(worker)
	in.changeObserved(worker, func(h *observed.Host) { h.Hostname = name })
	if !warned() {
		t.Errorf("no warning: %v", Decide(in).Warnings)
	}
	in.Is.API.Pool = &observed.Pool{}
	if warned() {
		t.Error("it is in no pool")
	}
}
