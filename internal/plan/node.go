package plan

import (
	"cmp"
	"errors"
	"fmt"
	"kubeone/internal/decide"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"slices"
	"strings"
)

// RemoveNode plans how one host leaves a running cluster: it is drained, leaves etcd and is reset, and its Node is
// deleted. A host that does not answer is an error, unless hostGone says that it no longer exists. Then only its member
// and its Node are removed, after a check that it is dead. RemoveNode refuses to remove the last control-plane host,
// and a member that the quorum needs.
func RemoveNode(in decide.Input, id string, hostGone bool) (Plan, error) {
	b, err := removeHostPlan(in, id, hostGone, "node-remove")
	if err != nil {
		return Plan{}, err
	}
	b.addHooks()
	return b.plan, nil
}

// ReplaceNode plans how a host leaves a running cluster, as RemoveNode does, and joins it again as a new one. If the
// host no longer exists, the plan tells the operator what to do next. A host that could leave but not join again is an
// error.
func ReplaceNode(in decide.Input, id string, hostGone bool) (Plan, error) {
	b, err := removeHostPlan(in, id, hostGone, "node-replace")
	if err != nil {
		return Plan{}, err
	}
	h := b.hostByID(id)
	id = cmp.Or(h.ID, id)
	if hostGone {
		b.plan.Operator = append(b.plan.Operator, problem.Instruction{
			Host: id, Problems: []problem.Problem{{Code: problem.SuccessorNeeded, Host: id}},
			Steps: decide.Successor(h),
		})
		return b.plan, nil
	}
	if n := len(b.plan.Steps); n > 0 {
		b.barrier = []string{b.plan.Steps[n-1].ID}
	}
	b.in.Limit = map[string]bool{id: true}
	decisions := b.planRoutes()
	b.addHooks()
	b.finishPlan(decisions[0])
	joins := func(s Step) bool { return s.Host == id && s.Intent.Kind.Joins() }
	if !slices.ContainsFunc(b.plan.Steps, joins) {
		last := decisions[len(decisions)-1]
		return Plan{}, fmt.Errorf("%s could leave the cluster but could not join it again: %s; run kubeone plan and fix "+
			"this first", b.displayName(h), last.Trace[len(last.Trace)-1].Why)
	}
	return b.plan, nil
}

// removeHostPlan plans the removal of one host.
func removeHostPlan(in decide.Input, id string, hostGone bool, route string) (*builder, error) {
	if err := contradictionErrors(in); err != nil {
		return nil, err
	}
	b := newBuilder(in, route)
	h := b.hostByID(id)
	id = cmp.Or(h.ID, id) // the caller may have given an address
	seen := b.world.Is.Hosts[id]
	reached := seen.Reach == observed.Reached
	machine := b.machineOn(h)
	switch {
	case machine != "" && !reached:
		return nil, fmt.Errorf("%s belongs to %s", b.displayName(h), machineOwner(machine))
	case b.world.Is.API.Reached != observed.Yes:
		return nil, fmt.Errorf("the cluster API does not answer, so %s cannot be removed safely: %s",
			b.displayName(h), b.world.Is.API.Problem)
	case b.controlPlane(h) && b.lastControlPlane(h):
		return nil, b.endsCluster(h)
	case seen.Reach == observed.Denied:
		return nil, fmt.Errorf("%s is running and refuses the login (%s): correct the login, or switch "+
			"the host off first", b.displayName(h), seen.Problem)
	case !reached && !hostGone:
		return nil,
			fmt.Errorf("%s cannot be reached (%s), so it cannot be drained and reset: start it or repair its network; if it "+
				"no longer exists, use --unreachable, which removes its etcd member and its Node once they are "+
				"confirmed dead", b.displayName(h), seen.Problem)
	case reached && hostGone:
		return nil, fmt.Errorf("%s answers, so it is not unreachable; omit --unreachable", b.displayName(h))
	}
	var err error
	if reached && (seen.Marker != nil || hasData(seen) || seen.Kubelet.Installed) {
		err = b.resetHost(h, false)
	} else {
		err = b.removeDead(h)
	}
	return b, errors.Join(append([]error{err}, b.refused...)...)
}

// lastControlPlane reports whether no other host in the manifest has a voting member of etcd, or is known to belong to
// the control plane. Members outside the manifest do not count: the operator could not reach the cluster through them.
func (b *builder) lastControlPlane(h desired.Host) bool {
	if b.world.Is.Etcd.Reached != observed.Yes {
		return len(b.in.Want.ControlPlane) == 1
	}
	own := b.memberIndex(h)
	return !slices.ContainsFunc(b.in.Want.Hosts(), func(other desired.Host) bool {
		i := b.memberIndex(other)
		return i >= 0 && i != own && !b.world.Is.Etcd.Members[i].Learner
	})
}

func (b *builder) endsCluster(h desired.Host) error {
	if others := b.strangeVoters(h); len(others) > 0 {
		return fmt.Errorf("%s is the last control-plane host in the manifest, but etcd also contains %s: the "+
			"cluster would become unreachable; add their hosts to the manifest first", b.displayName(h),
			problem.List(others))
	}
	return fmt.Errorf("%s is the last control-plane host, so the cluster would end with it; if you intend this, use "+
		"kubeone reset without --host", b.displayName(h))
}

// strangeVoters returns the names of etcd's voters other than the host's own.
func (b *builder) strangeVoters(h desired.Host) []string {
	var out []string
	own := b.memberIndex(h)
	for i, m := range b.world.Is.Etcd.Members {
		if i != own && !m.Learner {
			out = append(out, cmp.Or(m.Name, m.ID))
		}
	}
	return out
}

func (b *builder) unknownMembers(h desired.Host) error {
	problem := cmp.Or(b.world.Is.Etcd.Problem, "no etcd member was reached")
	return fmt.Errorf("the etcd members are not known, so it is unknown whether etcd keeps quorum without %s: %s; "+
		"bring etcd back first, as kubeone plan shows, or end the whole cluster with kubeone reset",
		b.displayName(h), problem)
}

// removeDead plans the removal of the member and the Node of a host that is dead or bare.
func (b *builder) removeDead(h desired.Host) error {
	if b.controlPlane(h) && b.world.Is.Etcd.Reached != observed.Yes {
		return b.unknownMembers(h)
	}
	if i := b.memberIndex(h); i >= 0 {
		m := b.world.Is.Etcd.Members[i]
		if m.Healthy == observed.Yes {
			return fmt.Errorf("etcd member %s answers the others, so %s is running and only this machine cannot reach "+
				"it: repair the network and run the command without --unreachable", m.Name, b.displayName(h))
		}
		v := quorum.SafeToRemove(b.world.Is.Etcd.Members, m.ID)
		if !v.Safe {
			return fmt.Errorf("etcd member %s must not leave: %s; bring the other members back first, as kubeone plan shows",
				strings.TrimSpace(m.Name+" ("+m.ID+")"), v.Why)
		}
		b.removeMembers([]decide.Removal{
			{Member: m.ID, Name: m.Name, Host: h.ID, Learner: m.Learner, Why: "asked for; " + v.Why},
		})
	}
	confirmed := len(b.plan.Steps) > 0
	if _, found := b.findNode(h); found {
		death := step.Death{Confirm: true}
		if !confirmed {
			death.Peer = h.ID
		}
		b.deleteNode(h, "asked for", nil, death)
	}
	return nil
}

// returnMinutes is how long Machine hosts may take to become free: a Machine gives up an unresponsive host after ten
// minutes, and drains wait for pods.
const returnMinutes = 30

// maxNamed is the maximum number of hosts that one sentence names.
const maxNamed = 20

// emptyPool plans that the Machines of a cluster are deleted before it ends, and that later steps wait for their hosts.
// With abandon it only names the hosts, which stay as they are.
func (b *builder) emptyPool(abandon bool) error {
	pool := b.world.Is.API.Pool
	if pool == nil {
		return nil
	}
	defer b.keysStay(*pool)
	hosts, others := unreturnedHosts(*pool)
	silent := pool.Controllers != observed.Yes
	switch all := slices.Concat(hosts, others); {
	case pool.Problem != "" && abandon:
		b.plan.Notes = append(b.plan.Notes,
			"Machine hosts, if there are any, stay as they are, because the Machines could not be read: "+pool.Problem)
		return nil
	case pool.Problem != "":
		return b.addProblem(problem.MachinesUnknown, problem.Parameters{"error": pool.Problem})
	case pool.Empty(), silent && len(all) == 0:
		return nil // no Machine has a host, and no controller runs that could return one
	case abandon:
		if len(all) > 0 {
			b.plan.Notes = append(b.plan.Notes,
				"these Machine hosts and everything on them stay as they are: "+problem.List(joinNames(all)))
		}
		return nil
	case len(others) > 0:
		return b.addProblem(problem.MachinesOfOthers, problem.Parameters{"machines": joinNames(others)})
	case silent:
		return b.addProblem(problem.ControllersSilent, problem.Parameters{"count": len(hosts),
			"hosts": joinNames(hosts)})
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
		changes = append(changes, "and more that were not read")
	}
	var needs []string
	if len(pool.Machines)+len(pool.Deployments)+pool.Sets > 0 {
		needs = []string{b.onCluster(string(step.DeleteMachines), Step{
			Intent: plainIntent(step.DeleteMachines), Action: Remove, Risk: Drains,
			Title:  "delete the MachineDeployments, MachineSets and Machines",
			Reason: "their hosts are returned before the cluster ends", Changes: changes,
		})}
	}
	b.barrier = []string{b.onCluster(string(step.AwaitHosts), Step{
		Intent: step.With(step.AwaitHostsParams{TimeoutSeconds: 60 * returnMinutes}),
		Action: Remove, Risk: Drains, Title: "wait until the hosts in the pool are free", Needs: needs,
		Reason:  fmt.Sprintf("kubeone controller drains, resets and returns them, within %d minutes", returnMinutes),
		Changes: hosts,
	})}
}

// unreturnedHosts returns the hosts that Machines have, or have not returned yet, and the Nodes of Machines outside the
// pool.
func unreturnedHosts(pool observed.Pool) (hosts, others []string) {
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

// joinNames returns names for a sentence, only some of them if there are many.
func joinNames(names []string) []string { return problem.Some(names, maxNamed) }

func (b *builder) addProblem(code problem.Code, parameters problem.Parameters) error {
	return errors.New(problemText(b.names, problem.Problem{Code: code, Parameters: parameters}))
}

// keysStay notes that hosts in the pool keep accepting the cluster's SSH key after the cluster has ended.
func (b *builder) keysStay(pool observed.Pool) {
	var names []string
	for _, h := range pool.Hosts {
		names = append(names, h.Name)
	}
	if len(names) > 0 {
		b.plan.Notes = append(b.plan.Notes,
			"hosts in the pool keep the cluster SSH key in authorized_keys unless kubeone host remove deletes it before the "+
				"cluster ends: "+problem.List(joinNames(names)))
	}
}

// leavesMachine notes that a host in the manifest stays as it is if it belongs to a Machine, and reports whether it
// does.
func (b *builder) leavesMachine(h desired.Host) bool {
	m := b.world.Is.Hosts[h.ID].Marker
	if m == nil || m.Machine == "" || m.Machine == h.Machine || m.Cluster != b.in.Want.Name {
		return false
	}
	b.plan.Notes = append(b.plan.Notes,
		fmt.Sprintf("%s belongs to Machine %s; the host and everything on it stay as they are", b.displayName(h),
			m.Machine))
	return true
}

// unseenMachines notes that Machines could not be listed, if a control plane has been there and so may have some.
func (b *builder) unseenMachines() {
	if b.in.Is.API.Reached == observed.Yes || len(b.plan.Steps) == 0 {
		return
	}
	for _, h := range b.in.Want.ControlPlane {
		if m := b.in.Is.Hosts[h.ID].Marker; m != nil && m.Complete {
			b.plan.Notes = append(b.plan.Notes,
				"the API does not answer, so it is unknown whether the cluster has Machines; Machine hosts stay as they are")
			return
		}
	}
}

// machineOn returns the Machine that has a worker of the manifest, according to the API; "" if there is none. It does
// not ask about control-plane hosts: users who may edit Hosts must not decide about these.
func (b *builder) machineOn(h desired.Host) string {
	if h.Machine != "" || b.controlPlane(h) {
		return ""
	}
	return b.in.Is.API.Pool.MachineOn(b.nodeName(h), h.Hostname, h.PublicAddress, h.PrivateAddress)
}
