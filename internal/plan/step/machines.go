package step

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The kinds by which the hosts of Machines are returned before their cluster ends.
const (
	DeleteMachines Kind = "delete-machines"
	AwaitHosts     Kind = "await-hosts"
)

func deleteMachinesRow() row {
	return row{
		kind: DeleteMachines, about: "MachineDeployments, MachineSets and Machines deleted",
		place: ThroughAPI, group: groupRemovals, effect: machinesDeleted,
	}
}

func machinesDeleted(w *World, _ desired.Host, _ Intent) {
	w.pool(func(p *observed.Pool) { p.Deployments, p.Machines, p.Sets = nil, nil, 0 })
}

// AwaitHostsParams say how long the hosts of Machines may take to be free.
type AwaitHostsParams struct {
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
}

// Kind is AwaitHosts.
func (AwaitHostsParams) Kind() Kind { return AwaitHosts }

func awaitHostsRow() row {
	return row{
		kind: AwaitHosts, about: "the hosts of deleted Machines returned by the controllers, and free",
		place: ThroughAPI, group: groupRemovals, params: paramsOf[AwaitHostsParams](), effect: hostsReturned,
	}
}

func hostsReturned(w *World, _ desired.Host, _ Intent) {
	w.pool(func(p *observed.Pool) {
		p.Hosts = slices.Clone(p.Hosts)
		for i, h := range p.Hosts {
			if h.Machine == "" {
				continue
			}
			w.Is.API.Nodes = slices.DeleteFunc(slices.Clone(w.Is.API.Nodes), func(n observed.Node) bool {
				return n.Name == h.Name
			})
			p.Hosts[i] = observed.PoolHost{Name: h.Name, Address: h.Address, State: "Free"}
		}
	})
}

// pool changes what is known of Machines and their hosts, if there are any.
func (w *World) pool(change func(*observed.Pool)) {
	if w.Is.API.Pool == nil {
		return
	}
	p := *w.Is.API.Pool
	change(&p)
	w.Is.API.Pool = &p
}
