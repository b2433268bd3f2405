package decide

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// view is an Input looked at once: what the questions need, worked out from the facts.
type view struct {
	in       *Input
	hosts    []hostState // every host of the manifest, control plane first, in its order
	cps      int         // how many of hosts are control plane
	ca       string
	claims   []string // CA hashes that claim to be this cluster's, if more than one does
	epoch    int      // how often the cluster has been recovered
	etcd     membership
	running  versions
	taken    nodename.Names
	nodes    match.Nodes
	unfit    []problem.Problem // why nothing can be done at all
	warnings []problem.Problem
}

// hostState is one host: wanted, observed and assessed.
type hostState struct {
	*desired.Host
	condition.Assessment
	is      observed.Host
	node    *observed.Node // nil: none, or not known
	inLimit bool           // inside the limit
	// wantKubelet is the wanted version of the host's kubelet.
	wantKubelet string
	// midUpgrade says that its upgrade has begun, and that what is wrong with it is what the rest of the upgrade writes
	// and starts anew.
	midUpgrade bool
	// leftAlone says that it is a worker that stops no others although it is not what it should be.
	leftAlone bool
	// refused is why the host must not have the name that it gives itself; nil where it may, or the manifest gives it.
	refused *problem.Problem
	// reported says that the host was not asked, because the decision is not about it, and that the API speaks for it.
	reported bool
}

// look works out the view of an Input.
func look(in Input) *view {
	in.Limit = within(in.Limit, in.About)
	v := &view{in: &in, cps: len(in.Want.ControlPlane), nodes: match.IndexNodes(in.Is.API.Nodes)}
	v.epoch = condition.Epoch(&in.Want, &in.Is)
	v.ca, v.claims = condition.ClusterCA(&in.Want, &in.Is)
	if in.CA != "" {
		v.ca, v.claims = in.CA, nil
	}
	v.hosts = make([]hostState, v.cps+len(in.Want.Workers))
	for i := range v.hosts {
		if i < v.cps {
			v.see(&v.hosts[i], &in.Want.ControlPlane[i])
		} else {
			v.see(&v.hosts[i], &in.Want.Workers[i-v.cps])
		}
	}
	v.refuseNames()
	v.leaveAlone()
	v.etcd = v.membership()
	for i := range v.hosts {
		v.hosts[i].midUpgrade = v.goesOn(&v.hosts[i])
	}
	v.running = v.versions()
	v.unfit, v.warnings = v.fitness()
	return v
}

// within are the hosts of a limit that the decision is about, too.
func within(limit, about map[string]bool) map[string]bool {
	switch {
	case about == nil:
		return limit
	case limit == nil:
		return about
	}
	both := map[string]bool{}
	for id, inside := range limit {
		if inside && about[id] {
			both[id] = true
		}
	}
	return both
}

// workersOnly reports whether the decision is about workers, so that the control plane is what the API says of it.
func (v *view) workersOnly() bool {
	return v.in.About != nil && !slices.ContainsFunc(v.controlPlane(), func(s hostState) bool {
		return v.in.About[s.ID]
	})
}

// etcdKnown reports whether enough is known of etcd for what the decision is about. An API that answers has an etcd
// with a quorum, and workers are not concerned with more.
func (v *view) etcdKnown() bool {
	return v.etcd.listed || v.workersOnly() && v.in.Is.API.Reached == observed.Yes
}

// see assesses one host.
func (v *view) see(s *hostState, w *desired.Host) {
	s.Host, s.is, s.inLimit = w, v.in.Is.Hosts[w.ID], v.in.Limit == nil || v.in.Limit[w.ID]
	s.wantKubelet = v.in.Want.KubeletVersion(*w)
	cx := condition.HostContext{
		Cluster: v.in.Want.Name, CA: v.ca, Version: v.in.Want.KubernetesVersion, API: v.in.Is.API.Reached,
		Etcd: v.listed(), Epoch: v.epoch, NoCNI: v.withoutCNI(),
	}
	if cx.API == observed.Yes {
		s.node = v.nodes.Of(w, &s.is)
		cx.Node = s.node
	}
	if cx.Etcd == observed.Yes && w.Role == desired.ControlPlane {
		cx.Member = match.Member(v.in.Is.Etcd.Members, w, match.NodeName(w, &s.is, s.node))
	}
	if s.reported = v.in.About != nil && !v.in.About[w.ID] && s.is.Reach == observed.NotAsked; s.reported {
		s.Assessment = condition.Reported(w, cx)
		return
	}
	s.Assessment = condition.Classify(w, &s.is, cx)
}

// listed reports whether etcd's list of members is known.
func (v *view) listed() observed.Tri {
	if v.in.Is.Etcd.Reached == observed.Yes && len(v.in.Is.Etcd.Members) > 0 {
		return observed.Yes
	}
	return observed.Unknown
}

// withoutCNI reports whether the network plugin is ours to apply and has not been applied yet.
func (v *view) withoutCNI() bool {
	name := v.in.Want.Network.CNI.Name
	_, wanted := v.in.Addons[name]
	_, applied := v.in.Is.API.Addons[name]
	return wanted && !applied && !v.addonsUnknown() && v.in.Is.API.Reached == observed.Yes
}

func (v *view) controlPlane() []hostState { return v.hosts[:v.cps] }

func (v *view) workers() []hostState { return v.hosts[v.cps:] }

// having returns the IDs of those hosts that satisfy the condition, in order.
func having(hosts []hostState, is func(*hostState) bool) []string {
	var ids []string
	for i := range hosts {
		if is(&hosts[i]) {
			ids = append(ids, hosts[i].ID)
		}
	}
	return ids
}

// count counts the hosts in one of the conditions.
func count(hosts []hostState, conditions ...condition.Condition) int {
	n := 0
	for i := range hosts {
		for _, c := range conditions {
			if hosts[i].Condition == c {
				n++
			}
		}
	}
	return n
}

func (v *view) assessments() map[string]condition.Assessment {
	out := make(map[string]condition.Assessment, len(v.hosts))
	for i := range v.hosts {
		out[v.hosts[i].ID] = v.hosts[i].Assessment
	}
	return out
}

// name is how a sentence names the host: its Node's name where that is known, else its ID.
func (s *hostState) name() string {
	switch {
	case s.Hostname != "":
		return s.Hostname
	case s.Node != "":
		return s.Node
	}
	return s.ID
}

// namesOf are the names of the hosts that satisfy the condition, in order.
func namesOf(hosts []hostState, is func(*hostState) bool) []string {
	var out []string
	for i := range hosts {
		if is(&hosts[i]) {
			out = append(out, hosts[i].name())
		}
	}
	return out
}

// names names the hosts that satisfy the condition, as a sentence has them.
func names(hosts []hostState, is func(*hostState) bool) string {
	return problem.List(namesOf(hosts, is))
}
