package decide

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/identity"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
)

// contradictionCode is the code of a sort of contradiction.
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

// Contradictions are the reasons why some host cannot be told from another, or is not what the manifest says.
func Contradictions(in Input) []problem.Problem {
	out := make([]problem.Problem, 0, len(in.Contradictions))
	for _, c := range in.Contradictions {
		out = append(out, contradiction(c))
	}
	return out
}

func contradiction(c identity.Contradiction) problem.Problem {
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

// contradictions are those that stop everything.
func (v *view) contradictions() []problem.Problem {
	var out []problem.Problem
	for _, c := range v.in.Contradictions {
		if v.amongWorkers(c) == nil {
			out = append(out, contradiction(c))
		}
	}
	return out
}

// amongWorkers are the IDs of the hosts that a contradiction is about, if all are workers of a cluster that there is:
// what one of them says stops no others. It is nil for any other contradiction. One about a role is known to more than
// the host itself. Of two machines that say they are one host, the one at that host's address is in no doubt.
func (v *view) amongWorkers(c identity.Contradiction) []string {
	if c.Kind == identity.OtherRole || !v.begun() {
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

// leaveAlone makes workers Unclear of a cluster that there is without them: those of another cluster, those that cannot
// be installed on, those that cannot be told from another, and those that claim a name that is another's. They are not
// touched, a person is told why, and nothing else waits for them.
func (v *view) leaveAlone() {
	if !v.begun() {
		return
	}
	doubts := map[string][]problem.Problem{}
	for _, c := range v.in.Contradictions {
		for _, id := range v.amongWorkers(c) {
			doubts[id] = append(doubts[id], contradiction(c))
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
		case s.joined() && s.refusesCgroups() != nil:
			why = []problem.Problem{*s.refusesCgroups()}
		case s.missing():
			why, _ = preflight.Check(s.Host, &s.is, s.wantKubelet, s.Condition == condition.Empty && !s.Resume)
		}
		if len(why) > 0 {
			s.Condition, s.Reasons, s.Resume, s.Replaced = condition.Unclear, why, false, false
			s.leftAlone = true
		}
	}
}

// moved are the hosts that were recognised at another address than the manifest gives them.
func (v *view) moved() []problem.Problem {
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

// movedHost is the problem of a host that answers at another address than the manifest gives it; nil of any other.
func (v *view) movedHost(id string) *problem.Problem {
	for _, m := range v.in.Moved {
		if m.Host == id {
			p := hostMoved(m)
			return &p
		}
	}
	return nil
}

// needsCredentials reports whether the host would be given the identity of its Node. One at another address than the
// manifest's does not get it: that it is this host is its own word, and the host may be one that is silent.
func needsCredentials(s *hostState) bool {
	return s.Condition.Installable() ||
		s.Condition == condition.Regenerable && slices.Contains(s.Parts, condition.PartKubelet)
}

// posesAs reports whether a worker's Node has, by its own word, a name that another host has with more right: one that
// the manifest calls so, whose Node has its address, or that is of the control plane, with a key that is approved.
// Where neither of two workers has more right, that is so for both. The hosts are those of that name.
func (v *view) posesAs(s *hostState, named []*hostState) bool {
	if s.Role != desired.Worker || s.Node == "" || s.Hostname != "" || !v.begun() {
		return false
	}
	right := func(h *hostState) bool {
		return h.Hostname != "" || h.node != nil || h.controlPlane() && h.joined() && h.is.FirstContact == ""
	}
	return slices.ContainsFunc(named, func(o *hostState) bool {
		return o.ID != s.ID && (right(o) || !right(s) && !o.controlPlane())
	})
}

// sameName is the problem of the hosts that have the name.
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
