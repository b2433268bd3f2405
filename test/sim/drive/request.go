package drive

import (
	"cmp"
	"errors"

	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// command is one of kubeone's commands that change a cluster.
type command int

const (
	applyAll command = iota
	applyLimited
	applyForced // rolls the configuration out although nothing differs
	resetHosts
	removeHost
	replaceHost
	recoverCluster
	rotateCA // for etcd
)

// request is an operator's request. The zero value is apply.
type request struct {
	command command
	hosts   []string // IDs of the limit or the subjects; none means all
	gone    bool     // a person confirms that the host no longer exists
	rotate  bool     // rotate the encryption key of Secrets
	purge   bool     // delete kept data, too
	resume  bool     // only finish a rotation that has begun
	on      string   // where a recovery begins, if a person has chosen
}

// isApply reports whether the command is a form of apply.
func (r request) isApply() bool { return r.command <= applyForced }

// forgetsHosts reports whether reset hosts stay bare, so that nothing of kubeone may be left there.
func (r request) forgetsHosts() bool { return r.command == resetHosts || r.command == removeHost }

// explainDecision explains the decision.
func (l look) explainDecision() string {
	if l.refused != nil {
		return "to refuse: " + l.refused.Error()
	}
	return string(l.first.Route) + ": " + l.first.Trace[len(l.first.Trace)-1].Why
}

// lookForRequest returns what the operator observes, and plans for its request.
func (o *operator) lookForRequest() look {
	in, who := o.sim.decisionInput(o.file)
	asked := o.request.resolveHosts(who)
	switch asked.command {
	case applyLimited, applyForced:
		if in.ForceUpgrade = asked.command == applyForced; !in.ForceUpgrade {
			in.Limit = setOf(asked.hosts)
		}
	case applyAll: // a run on one worker
		in.Limit = setOf([]string{who.IDs.Of(o.alone)})
	}
	in.RotateKey = o.request.rotate && !o.looksLast // once
	in = decide.Settle(in, o.request.command != applyForced)
	l := look{is: in.Is, want: in.Want, world: o.sim.seenVersion(), who: who}
	if asked.isApply() {
		p, decisions := plan.Build(plan.Input{Decide: in})
		l.plan, l.first = p, decisions[0]
		return l
	}
	l.first = decide.Decide(in)
	l.plan, l.refused = o.planRequest(in, asked)
	return l
}

// resolveHosts returns the request with the host IDs after machines were recognised.
func (r request) resolveHosts(who identity.Result) request {
	r.hosts, r.on = who.IDs.OfAll(r.hosts...), who.IDs.Of(r.on)
	return r
}

func setOf(ids []string) map[string]bool {
	out := map[string]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// planRequest returns the plan of a request that the state of the world alone does not lead to.
func (o *operator) planRequest(in decide.Input, r request) (plan.Plan, error) {
	switch {
	case o.sim.Off == Wiped && r.command == resetHosts:
		return atOnce(in, r, step.With(step.ResetHostParams{})), nil
	case o.sim.Off == KeepNothing && r.purge:
		return atOnce(in, r, step.With(step.PurgeParams{})), nil
	case o.sim.Off == Anyhow && r.command == recoverCluster:
		in.Is.Etcd, in.Is.API = observed.Etcd{Reached: observed.No}, observed.API{Reached: observed.No}
		for id, h := range in.Is.Hosts {
			h.EtcdHealth, h.APIServer, h.EtcdLost = observed.No, observed.No, "invalid database"
			in.Is.Hosts[id] = h
		}
	}
	switch r.command {
	case resetHosts:
		return plan.Reset(in, plan.ResetOptions{Hosts: r.hosts, Purge: r.purge})
	case removeHost:
		return plan.RemoveNode(in, r.hosts[0], r.gone)
	case replaceHost:
		return plan.ReplaceNode(in, r.hosts[0], r.gone)
	case rotateCA:
		return plan.RotateCA(in, []string{observed.EtcdCA}, !o.looksLast && !r.resume)
	}
	return o.planRecovery(in, r)
}

// atOnce returns a reset that has only this step left, without the steps before it.
func atOnce(in decide.Input, r request, do step.Intent) plan.Plan {
	var p plan.Plan
	for _, id := range r.hosts {
		h, _ := in.Want.Host(id)
		do.Role, do.NodeName = h.Role, h.Hostname
		p.Steps = append(p.Steps, plan.Step{ID: string(do.Kind) + "/" + h.Hostname, Host: id, Intent: do})
	}
	return p
}

// errNotDestroyed is the reason why a person gives up: a machine to be confirmed as destroyed is only unreachable.
var errNotDestroyed = errors.New("a person does not confirm that a machine is destroyed which runs")

// planRecovery plans a recovery from the member with the newest data. A person confirms that unreachable machines are
// destroyed, after checking, and they are destroyed. The person chooses a host if the newest data is unknown.
func (o *operator) planRecovery(in decide.Input, r request) (plan.Plan, error) {
	with := plan.RecoverOptions{
		Copy: plan.Copy{From: step.SurvivingMember}, On: r.on, Progress: o.sim.etcdProgress(in),
	}
	var scrap []*world.Host
	honest := true
	for _, h := range in.Want.ControlPlane {
		if in.Is.Hosts[h.ID].Reach == observed.Unreachable {
			with.Destroyed = append(with.Destroyed, h.ID)
			machine := o.sim.World.Host(h.ID)
			scrap = append(scrap, machine)
			honest = honest && machine != nil && !machine.Up
		}
	}
	members := in.Is.Etcd.Members
	for _, told := range with.Progress {
		members = append(members[:len(members):len(members)], told.Members...)
	}
	for _, m := range quorum.Merged(members) {
		if h := o.sim.World.Host(m.Name); h != nil && h.Outside {
			with.Destroyed = append(with.Destroyed, m.Name)
			scrap = append(scrap, h)
		}
	}
	p, err := plan.Recover(in, with)
	switch {
	case err != nil:
		return p, err
	case !honest:
		return plan.Plan{}, errNotDestroyed
	}
	for _, h := range scrap {
		if h != nil && h.Disk.Holds() {
			o.sim.traceEvent("a person takes the machine of %s away", h.Name)
			o.sim.World.Scrap(h)
		}
	}
	return p, nil
}

// etcdProgress returns the progress of etcd's data on the hosts that answer.
func (s *Simulation) etcdProgress(in decide.Input) map[string]plan.Progress {
	out := map[string]plan.Progress{}
	for i, h := range in.Want.ControlPlane {
		machine := s.World.Host(h.ID)
		if machine == nil || machine.Disk.Data == nil {
			continue // whatever it has answered
		}
		if seen := in.Is.Hosts[h.ID]; seen.Reach == observed.Reached && seen.EtcdData == observed.Yes {
			said := plan.Progress{Revision: int64(machine.Disk.Data.Revision), AtLeast: !machine.Run.Etcd}
			if s.Off == OldData {
				said = plan.Progress{Revision: int64(100 - i)}
			}
			if s.Off != Unlisted {
				said.Members = s.World.OnDisk(machine)
			}
			out[h.ID] = said
		}
	}
	return out
}

// chooseHost returns the answering host with the newest data, for a person who has checked.
func (s *Simulation) chooseHost() string {
	best, revision := "", -1
	r := s.World.EtcdCluster()
	for _, h := range s.World.Hosts {
		if d := h.Disk.Data; d != nil && h.Up && !h.Cut && s.file.has[h.ID] && d.EtcdCluster == r.ID &&
			d.Revision > revision {
			best, revision = h.ID, d.Revision
		}
	}
	return best
}

// grantOf returns what a person allows with the request.
func (o *operator) grantOf() safety.Grant {
	g := safety.Grant{
		Wanted: o.file.has, Objects: o.file.ownObjects(), Hooked: len(o.plan.want.Hooks) > 0, Places: o.plan.who.Reached,
	}
	if m := o.machine; m != nil {
		g.Machine, g.Limited, g.Leaves = m.uid, true, map[string]bool{m.host.ID: m.gone}
		return g
	}
	switch r := o.request; r.command {
	case removeHost, replaceHost, resetHosts:
		g.Leaves, g.Ends = map[string]bool{}, len(r.hosts) == 0
		for _, id := range r.resolveHosts(o.plan.who).hosts {
			g.Leaves[cmp.Or(string(g.Places[id]), id)] = true
		}
	case applyLimited:
		g.Limited = true
	case recoverCluster:
		g.Recovers, g.Chosen = true, r.on != ""
	}
	return g
}

// startRequest starts a run with a request.
func (s *Simulation) startRequest(r request) *operator {
	return s.beginWith(func(o *operator) { o.request = r })
}

// hostAt returns the host with that index in the manifest.
func (s *Simulation) hostAt(i int) desired.Host {
	hosts := s.file.want.Hosts()
	return hosts[i%len(hosts)]
}
