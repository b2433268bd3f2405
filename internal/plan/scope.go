package plan

import (
	"slices"

	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Scope is what the run of a plan locks before it begins.
type Scope struct {
	// Cluster says that the plan is about the cluster and not about workers alone: its run takes the Lease, too.
	Cluster bool
	// Hosts are the IDs of the hosts whose lock it takes, in the manifest's order: the hosts that it touches, and of a
	// plan about the cluster every control-plane host, also one that the manifest calls a worker by now. Hosts that did
	// not answer are not among them.
	Hosts []string
	// ControlPlane are those of Hosts that are of the control plane, as the manifest or the cluster has it: without the
	// lock of one of these no run goes on. Every other one is a worker, which a run can do without.
	ControlPlane []string
	// Complete says that Hosts has every control-plane host that the cluster has: nobody else can be at work on the
	// cluster without the lock of one of these. It is false where that is not known.
	Complete bool
	// Ends says that every control-plane host becomes bare, and so the API ends before the plan does.
	Ends bool
}

// Dispensable are the IDs of the hosts without whose lock the run goes on, and which it then does not touch: workers.
func (s Scope) Dispensable() map[string]bool {
	out := map[string]bool{}
	for _, id := range s.Hosts {
		if !slices.Contains(s.ControlPlane, id) {
			out[id] = true
		}
	}
	return out
}

// LockScope says what the run of a plan locks. A plan is about workers alone if each of its steps is about one worker
// that answers, or a join token of its own; every other plan is about the cluster. A host that the manifest calls a
// worker is none as long as the cluster has its Node as a control-plane host's, or lists a member of etcd as its, or
// the host itself says so. That of a Machine is one whatever it says: it gets no Node of the control plane, and must
// not hold up others.
func LockScope(p Plan, want desired.Cluster, is observed.World) Scope {
	if len(p.Steps) == 0 {
		return Scope{}
	}
	touched, hosts, nodes := map[string]bool{}, want.HostsByID(), match.IndexNodes(is.API.Nodes)
	var s Scope
	for _, of := range p.Steps {
		touched[of.Host] = true
		s.Cluster = s.Cluster || !aboutWorker(of, hosts, is, nodes)
	}
	for _, h := range want.Hosts() {
		seen := is.Hosts[h.ID]
		controlPlane := ofControlPlane(h, is, nodes.Of(&h, &seen))
		if seen.Reach != observed.Reached || !touched[h.ID] && !(s.Cluster && controlPlane) {
			continue
		}
		s.Hosts = append(s.Hosts, h.ID)
		if controlPlane {
			s.ControlPlane = append(s.ControlPlane, h.ID)
		}
	}
	s.Complete = s.Cluster && complete(p, want, is)
	s.Ends = !slices.ContainsFunc(want.ControlPlane, func(h desired.Host) bool {
		return !slices.ContainsFunc(p.Steps, func(s Step) bool {
			return s.Host == h.ID && s.Intent.Kind == step.ResetHost
		})
	})
	return s
}

// ClusterScope is the scope of what is about the cluster and has no plan.
func ClusterScope(want desired.Cluster, is observed.World) Scope {
	return LockScope(Plan{Steps: []Step{{}}}, want, is)
}

// ControlPlaneBusy reports whether a step of a run runs on a control-plane host: what that is when it has ended, no
// plan of now can say. The word of a worker stops nothing, unless the cluster has it as one of its control plane.
func ControlPlaneBusy(want desired.Cluster, is observed.World) bool {
	nodes := match.IndexNodes(is.API.Nodes)
	return slices.ContainsFunc(want.Hosts(), func(h desired.Host) bool {
		seen := is.Hosts[h.ID]
		return seen.Step != nil && ofControlPlane(h, is, nodes.Of(&h, &seen))
	})
}

// aboutWorker reports whether the lock of a worker is enough for the step.
func aboutWorker(s Step, hosts map[string]desired.Host, is observed.World, nodes match.Nodes) bool {
	switch s.Intent.Kind.Concerns() {
	case step.ItsRun:
		return true
	case step.ItsHost:
		h, ok := hosts[s.Host]
		seen := is.Hosts[h.ID]
		return ok && seen.Reach == observed.Reached && !ofControlPlane(h, is, nodes.Of(&h, &seen)) &&
			(h.Machine != "" || !seen.SaysControlPlane())
	}
	return false
}

// ofControlPlane reports whether the manifest has the host in the control plane, or the cluster has: by its Node (nil:
// it has none), or by a member of etcd. A worker that is a Machine's is not.
func ofControlPlane(h desired.Host, is observed.World, node *observed.Node) bool {
	if h.Role == desired.ControlPlane || h.Machine != "" {
		return h.Role == desired.ControlPlane
	}
	return node != nil && node.ControlPlane ||
		match.MemberIndex(is.Etcd.Members, h, NodeName(h, is.Hosts[h.ID])) >= 0
}

// complete reports whether the control-plane hosts that answered are all that the cluster has. A recovery goes without
// those that were confirmed to be destroyed, and begins an etcd of its own, as an installation does.
func complete(p Plan, want desired.Cluster, is observed.World) bool {
	begins := func(k step.Kind) bool {
		return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == k })
	}
	if begins(step.Restore) {
		return true
	}
	ours := map[string]bool{} // etcd members and Nodes that are of hosts which answered
	for _, h := range want.ControlPlane {
		if is.Hosts[h.ID].Reach != observed.Reached {
			return false
		}
		name := NodeName(h, is.Hosts[h.ID])
		ours[name] = true
		if i := match.MemberIndex(is.Etcd.Members, h, name); i >= 0 {
			ours[is.Etcd.Members[i].ID] = true
		}
	}
	return (is.Etcd.Reached == observed.Yes || begins(step.Init)) &&
		!slices.ContainsFunc(is.Etcd.Members, func(m observed.Member) bool { return !ours[m.ID] }) &&
		!slices.ContainsFunc(is.API.Nodes, func(n observed.Node) bool { return n.ControlPlane && !ours[n.Name] })
}
