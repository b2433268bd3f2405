package decide

import (
	"cmp"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/identity"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
	"strings"
)

// contradictionCode maps a kind of contradiction to its code.
func contradictionCode(k identity.Kind) problem.Code {
	switch k {
	case identity.SameID:
		return problem.HostIDDuplicate
	case identity.OtherID:
		return problem.HostIDMismatch
	case identity.Displaced:
		return problem.HostIDElsewhere
	case identity.OtherHostname:
		return problem.HostnameChanged
	default:
		return problem.RoleChanged
	}
}

// Contradictions returns why hosts cannot be told apart, or differ from the manifest.
func Contradictions(in Input) []problem.Problem {
	out := make([]problem.Problem, 0, len(in.Contradictions))
	for _, c := range in.Contradictions {
		out = append(out, contradictionProblem(c))
	}
	return out
}

func contradictionProblem(c identity.Contradiction) problem.Problem {
	p := problem.Problem{Code: contradictionCode(c.Kind)}
	switch c.Kind {
	case identity.SameID:
		p.Parameters = problem.Parameters{"id": c.Host, "address": c.Address, "other": c.OtherAddress}
	case identity.OtherID:
		p.Parameters = problem.Parameters{"id": c.Host, "address": c.Address, "says": c.Says}
	case identity.Displaced:
		p.Parameters = problem.Parameters{"id": c.Host, "address": c.Address, "says": c.Says, "other": c.OtherAddress}
	default:
		p.Host, p.Parameters = c.Host, problem.Parameters{"wanted": c.Wants, "says": c.Says}
	}
	return p
}

// stoppingContradictions returns the contradictions that stop everything.
func (v *view) stoppingContradictions() []problem.Problem {
	var out []problem.Problem
	for _, c := range v.in.Contradictions {
		if v.amongWorkers(c) == nil {
			out = append(out, contradictionProblem(c))
		}
	}
	return out
}

// amongWorkers returns the IDs of the hosts in a contradiction, if all are workers of an existing cluster: one worker's
// claim does not stop the others. It is nil for other contradictions, also for one about a role, which is not the
// host's claim alone. If two machines claim to be one host, the one at that host's address is not in doubt.
func (v *view) amongWorkers(c identity.Contradiction) []string {
	if c.Kind == identity.OtherRole || !v.hasBegun() {
		return nil
	}
	var ids []string
	for i := range v.hosts {
		h := v.hosts[i].Host
		named := !c.Home && (h.ID == c.Host || c.Kind != identity.OtherHostname && h.ID == c.Says)
		found := h.PublicAddress != "" && (!c.Home && h.PublicAddress == c.Address || h.PublicAddress == c.OtherAddress)
		switch {
		case !named && !found:
		case h.Role != desired.Worker:
			return nil
		default:
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// leaveAlone makes workers Unclear if an existing cluster can do without them: workers of another cluster, workers that
// cannot be installed or told apart, and workers that claim another's name. They are not changed, the operator is told
// why, and nothing waits for them.
func (v *view) leaveAlone() {
	if !v.hasBegun() {
		return
	}
	doubts := map[string][]problem.Problem{}
	for _, c := range v.in.Contradictions {
		for _, id := range v.amongWorkers(c) {
			doubts[id] = append(doubts[id], contradictionProblem(c))
		}
	}
	for i := range v.hosts[v.cps:] {
		s := &v.hosts[v.cps+i]
		if s.reported || !s.inLimit {
			continue // nothing is done to it anyway
		}
		why := doubts[s.ID]
		switch {
		case len(why) > 0:
		case s.Condition == condition.Foreign:
			why = s.Reasons[:1:1]
		case s.refused != nil:
			why = []problem.Problem{*s.refused}
		case needsCredentials(s) && v.movedHost(s.ID) != nil:
			why = []problem.Problem{*v.movedHost(s.ID)}
		case v.strangeVersion(s) != nil:
			why = []problem.Problem{*v.strangeVersion(s)}
		case v.takesNode(s) != nil:
			why = []problem.Problem{*v.takesNode(s)}
		case s.hasJoined() && s.refusesCgroups() != nil:
			why = []problem.Problem{*s.refusesCgroups()}
		case v.cannotUpgradePackages(s) != nil:
			why = []problem.Problem{*v.cannotUpgradePackages(s)}
		case s.isMissing():
			why, _ = preflight.Check(s.Host, &s.is, s.wantKubelet, s.Condition == condition.Empty && !s.Resume)
		}
		if len(why) > 0 {
			s.Condition, s.Reasons, s.Resume, s.Replaced = condition.Unclear, why, false, false
			s.leftAlone = true
		}
	}
}

// movedHosts returns a problem for each host recognised at another address than the manifest's.
func (v *view) movedHosts() []problem.Problem {
	var out []problem.Problem
	for _, m := range v.in.Moved {
		out = append(out, hostMoved(m))
	}
	return out
}

func hostMoved(m identity.Move) problem.Problem {
	return problem.Problem{
		Code: problem.HostMoved, Host: m.Host, Parameters: problem.Parameters{"address": m.Address, "found": m.Found},
	}
}

// movedHost returns a problem if the host answers at an address other than the one in the manifest.
func (v *view) movedHost(id string) *problem.Problem {
	for _, m := range v.in.Moved {
		if m.Host == id {
			p := hostMoved(m)
			return &p
		}
	}
	return nil
}

// needsCredentials reports whether a step would give the host the identity of its Node. A host at another address than
// the manifest's does not get it: it only claims to be this host, and may be one that does not answer.
func needsCredentials(s *hostState) bool {
	return s.Condition.Installable() ||
		s.Condition == condition.Regenerable && slices.Contains(s.Parts, condition.PartKubelet)
}

// posesAs reports whether a worker claims a Node name that another host has a better right to: a host that the manifest
// names so, whose Node has its address, or that is of the control plane, with an approved key. If neither of two
// workers has a better right, both pose. Named holds the hosts with that name.
func (v *view) posesAs(s *hostState, named []*hostState) bool {
	if s.Role != desired.Worker || s.Node == "" || s.Hostname != "" || !v.hasBegun() {
		return false
	}
	hasRight := func(h *hostState) bool {
		return h.Hostname != "" || h.node != nil || h.controlPlane() && h.hasJoined() && h.is.FirstContact == ""
	}
	return slices.ContainsFunc(named, func(o *hostState) bool {
		return o.ID != s.ID && (hasRight(o) || !hasRight(s) && !o.controlPlane())
	})
}

func sameName(name string, named []*hostState) problem.Problem {
	return problem.Problem{
		Code: problem.HostNameDuplicate, Parameters: problem.Parameters{"hosts": idsOf(named), "name": name},
	}
}

func idsOf(hosts []*hostState) []string {
	var ids []string
	for _, s := range hosts {
		ids = append(ids, s.ID)
	}
	return ids
}

// checkReportedName returns why the name that a host reports is refused. It returns nil if the name is accepted, or if
// the manifest names the host. kubeone does nothing to a host whose name is refused.
func (v *view) checkReportedName(s *hostState) *problem.Problem {
	if s.Hostname != "" || s.is.Reach != observed.Reached || s.is.Hostname == "" {
		return nil
	}
	reported := strings.ToLower(s.is.Hostname)
	claim := v.taken.Claim(*s.Host, reported)
	if holder := cmp.Or(claim.Holder, v.nodeHolder(s, claim)); holder != "" {
		return &problem.Problem{
			Code: problem.HostNameTaken, Host: s.ID, Parameters: problem.Parameters{"name": reported, "holder": holder},
		}
	}
	if known := v.knownName(s); known != "" && known != reported {
		return &problem.Problem{
			Code: problem.HostRenamed, Host: s.ID, Parameters: problem.Parameters{"node": known, "says": reported},
		}
	}
	return nil
}

// knownName returns the host's Node name in the cluster record, else, for a host that has joined or begun to, in its
// own marker; "" if there is none. A deleted Node binds no host to its name.
func (v *view) knownName(s *hostState) string {
	if name := v.taken.Recorded(s.ID); name != "" {
		return name
	}
	if m := s.is.Marker; m != nil && m.Cluster == v.in.Want.Name && s.Condition != condition.Empty {
		return strings.ToLower(m.Node)
	}
	return ""
}

// nodeHolder returns the owner of the Node or etcd member of the claimed name, if it is not the host.
func (v *view) nodeHolder(s *hostState, claim nodename.Claim) string {
	if claim.Known {
		return ""
	}
	n := v.nodes.Named(claim.Node)
	switch {
	case n == nil:
	case claim.CheckNode(n.Addresses, n.Labels) != nil:
		return "another host's Node"
	case s.Condition != condition.Empty && n.MachineID != "" && s.is.MachineID != "" && n.MachineID != s.is.MachineID:
		return "the Node of another machine"
	}
	for i := range v.in.Is.Etcd.Members {
		if m := &v.in.Is.Etcd.Members[i]; m.Name == claim.Node && m.Healthy == observed.Yes && s.Etcd != m.ID {
			return "another host's etcd member"
		}
	}
	return ""
}

// refuseNames finds the hosts whose own names are refused. They do not get the Node or the etcd member with that name.
func (v *view) refuseNames() {
	v.taken = nodename.Of(v.in.Want, v.in.Is.API)
	named := byNodeName(v.hosts)
	for i := range v.hosts {
		switch s := &v.hosts[i]; {
		case v.posesAs(s, named[s.Node]):
			p := sameName(s.Node, named[s.Node])
			s.refused = &p
		case !s.controlPlane() || len(named[s.Node]) == 1: // sameNames reports a duplicate name once, for both
			s.refused = v.checkReportedName(s)
		}
	}
	for i := range v.hosts {
		s := &v.hosts[i]
		if s.refused == nil {
			continue
		}
		s.Node, s.node, s.Etcd = "", nil, ""
		if m := match.Member(v.in.Is.Etcd.Members, s.Host, ""); m != nil && s.controlPlane() {
			s.Etcd = m.ID // by its address
		}
	}
}

// byNodeName groups the hosts by the name of their Node, in order.
func byNodeName(hosts []hostState) map[string][]*hostState {
	named := make(map[string][]*hostState, len(hosts))
	for i := range hosts {
		named[hosts[i].Node] = append(named[hosts[i].Node], &hosts[i])
	}
	return named
}

// NodeName is the name of a host's Node.
type NodeName struct {
	Name string
	// Known says that the manifest or the cluster gives the host that name. Otherwise only the host itself does.
	Known bool
}

// NodeNames returns the names that the hosts have, or will get, as Nodes, by host ID. A host is left out if its name is
// refused, unknown, or shared with another.
func NodeNames(in Input) map[string]NodeName {
	v, out := newView(in), map[string]NodeName{}
	named := byNodeName(v.hosts)
	for i := range v.hosts {
		if s := &v.hosts[i]; s.Node != "" && len(named[s.Node]) == 1 {
			itsWord := s.is.Reach == observed.Reached && s.is.Hostname != ""
			out[s.ID] = NodeName{s.Node, !itsWord || s.node != nil || v.taken.Claim(*s.Host, s.Node).Known}
		}
	}
	return out
}
