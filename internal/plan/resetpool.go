package plan

import (
	"errors"
	"fmt"
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// returnMinutes is how long the hosts of Machines may take to be free: a Machine gives up a silent host after ten
// minutes, and drains wait for pods.
const returnMinutes = 30

// mostNamed is how many hosts one sentence names.
const mostNamed = 20

// emptyPool plans that the Machines of a cluster that ends are deleted, and their hosts awaited: every later step
// needs that. With abandon it names the hosts that stay as they are instead.
func (b *builder) emptyPool(abandon bool) error {
	pool := b.world.Is.API.Pool
	if pool == nil {
		return nil
	}
	defer b.keysStay(*pool)
	hosts, others := unreturned(*pool)
	silent := pool.Controllers != observed.Yes
	switch all := slices.Concat(hosts, others); {
	case pool.Problem != "" && abandon:
		b.plan.Notes = append(b.plan.Notes,
			"hosts of Machines, if there are any, stay as they are: the Machines could not be read: "+pool.Problem)
		return nil
	case pool.Problem != "":
		return b.problem(problem.MachinesUnknown, problem.Parameters{"error": pool.Problem})
	case pool.Empty(), silent && len(all) == 0:
		return nil // nobody has a host, and nobody is there who would give one away
	case abandon:
		if len(all) > 0 {
			b.plan.Notes = append(b.plan.Notes,
				"these hosts of Machines stay as they are, with all that is on them: "+problem.List(named(all)))
		}
		return nil
	case len(others) > 0:
		return b.problem(problem.MachinesOfOthers, problem.Parameters{"machines": named(others)})
	case silent:
		return b.problem(problem.ControllersSilent, problem.Parameters{"count": len(hosts), "hosts": named(hosts)})
	}
	b.returnHosts(*pool, hosts)
	return nil
}

func (b *builder) returnHosts(pool observed.Pool, hosts []string) {
	var changes []string
	for _, d := range pool.Deployments {
		changes = append(changes, "MachineDeployment "+d.Namespace+"/"+d.Name)
	}
	for _, m := range pool.Machines {
		changes = append(changes, "Machine "+m.ID())
	}
	if pool.More {
		changes = append(changes, "and more of them that were not read")
	}
	var needs []string
	if len(pool.Machines)+len(pool.Deployments)+pool.Sets > 0 {
		needs = []string{b.onCluster(string(step.DeleteMachines), Step{
			Intent: only(step.DeleteMachines), Action: Remove, Risk: Drains,
			Title:  "delete the MachineDeployments, MachineSets and Machines",
			Reason: "the cluster ends, and their hosts are returned before it does", Changes: changes,
		})}
	}
	b.barrier = []string{b.onCluster(string(step.AwaitHosts), Step{
		Intent: step.With(step.AwaitHostsParams{TimeoutSeconds: 60 * returnMinutes}),
		Action: Remove, Risk: Drains, Title: "wait until the hosts of the pool are free", Needs: needs,
		Reason:  fmt.Sprintf("kubeone controller drains, resets and returns them, within %d minutes", returnMinutes),
		Changes: hosts,
	})}
}

// unreturned are the hosts that Machines have, or have had and not returned, and the Nodes of Machines which are not of
// the pool.
func unreturned(pool observed.Pool) (hosts, others []string) {
	for _, h := range pool.Claimed() {
		hosts = append(hosts, h.Name+" (Machine "+h.Machine+")")
	}
	for _, m := range pool.Machines {
		switch {
		case m.Host != "" || m.Node == "":
		case m.OfPool():
			hosts = append(hosts, m.Node+" (Machine "+m.ID()+")")
		default:
			others = append(others, m.Node+" (Machine "+m.ID()+")")
		}
	}
	return hosts, others
}

// named are names as a sentence has them, some of them where there are many.
func named(names []string) []string { return problem.Some(names, mostNamed) }

func (b *builder) problem(code problem.Code, parameters problem.Parameters) error {
	return errors.New(problemText(b.names, problem.Problem{Code: code, Parameters: parameters}))
}

// keysStay notes that hosts of the pool go on letting the cluster's key in, which ends with the cluster.
func (b *builder) keysStay(pool observed.Pool) {
	var names []string
	for _, h := range pool.Hosts {
		names = append(names, h.Name)
	}
	if len(names) > 0 {
		b.plan.Notes = append(b.plan.Notes, "hosts of the pool keep the cluster's SSH key in authorized_keys, unless "+
			"kubeone host remove takes it out before the cluster ends: "+problem.List(named(names)))
	}
}

// leavesMachine notes that a host of the manifest which is a Machine's stays as it is, and reports whether it is one.
func (b *builder) leavesMachine(h desired.Host) bool {
	m := b.world.Is.Hosts[h.ID].Marker
	if m == nil || m.Machine == "" || m.Machine == h.Machine || m.Cluster != b.in.Want.Name {
		return false
	}
	b.plan.Notes = append(b.plan.Notes,
		fmt.Sprintf("%s belongs to Machine %s and stays as it is, with all that is on it", b.name(h), m.Machine))
	return true
}

// unseenMachines notes that nobody could look for Machines, where there may be some: a control plane has been there.
func (b *builder) unseenMachines() {
	if b.in.Is.API.Reached == observed.Yes || len(b.plan.Steps) == 0 {
		return
	}
	for _, h := range b.in.Want.ControlPlane {
		if m := b.in.Is.Hosts[h.ID].Marker; m != nil && m.Complete {
			b.plan.Notes = append(b.plan.Notes, "the API does not answer, so it was not looked whether the cluster "+
				"has Machines; their hosts stay as they are")
			return
		}
	}
}

// machineOn is the Machine that has a worker of the manifest, by what the API says; "" where there is none. What it
// says of a control-plane host is not asked: whoever may edit Hosts is not to decide about these.
func (b *builder) machineOn(h desired.Host) string {
	if h.Machine != "" || b.controlPlane(h) {
		return ""
	}
	return b.in.Is.API.Pool.MachineOn(b.node(h), h.Hostname, h.PublicAddress, h.PrivateAddress)
}
