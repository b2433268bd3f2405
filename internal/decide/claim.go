package decide

import (
	"cmp"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/match"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// refuseName is why a host must not have the name that it gives itself; nil where the manifest gives the name, or the
// host may have it. Nothing is done to a host whose name is refused.
func (v *view) refuseName(s *hostState) *problem.Problem {
	if s.Hostname != "" || s.is.Reach != observed.Reached || s.is.Hostname == "" {
		return nil
	}
	says := strings.ToLower(s.is.Hostname)
	claim := v.taken.Claim(*s.Host, says)
	if holder := cmp.Or(claim.Holder, v.nodeHolder(s, claim)); holder != "" {
		return &problem.Problem{
			Code: problem.HostNameTaken, Host: s.ID, Parameters: problem.Parameters{"name": says, "holder": holder},
		}
	}
	if known := v.knownName(s); known != "" && known != says {
		return &problem.Problem{
			Code: problem.HostRenamed, Host: s.ID, Parameters: problem.Parameters{"node": known, "says": says},
		}
	}
	return nil
}

// knownName is the name by which the cluster knows the host as a Node: by its record, else, of a host that has joined
// or begun to, by its own note. It is "" where it knows none. A Node that is gone binds no host to its name.
func (v *view) knownName(s *hostState) string {
	if name := v.taken.Recorded(s.ID); name != "" {
		return name
	}
	if m := s.is.Marker; m != nil && m.Cluster == v.in.Want.Name && s.Condition != condition.Empty {
		return strings.ToLower(m.Node)
	}
	return ""
}

// nodeHolder says whose the Node, or the member of etcd, of the claimed name is, if it is not the host's.
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
			return "another host's member of etcd"
		}
	}
	return ""
}

// refuseNames finds the hosts whose own names are refused. Nothing of the cluster's is taken for such a host's by that
// name.
func (v *view) refuseNames() {
	v.taken = nodename.Of(v.in.Want, v.in.Is.API)
	named := byNodeName(v.hosts)
	for i := range v.hosts {
		switch s := &v.hosts[i]; {
		case v.posesAs(s, named[s.Node]):
			p := sameName(s.Node, named[s.Node])
			s.refused = &p
		case !s.controlPlane() || len(named[s.Node]) == 1: // a double name is told of once, of both (sameNames)
			s.refused = v.refuseName(s)
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

// byNodeName are the hosts by the name of their Node, in order.
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
	// Known says that the manifest or the cluster knows the host by that name. Otherwise only the host itself says so.
	Known bool
}

// NodeNames are the names that the hosts have as Nodes, or are to have, by host ID. A host whose own name is refused
// has none, and neither has one whose name is not known, or is another one's too.
func NodeNames(in Input) map[string]NodeName {
	v, out := look(in), map[string]NodeName{}
	named := byNodeName(v.hosts)
	for i := range v.hosts {
		if s := &v.hosts[i]; s.Node != "" && len(named[s.Node]) == 1 {
			itsWord := s.is.Reach == observed.Reached && s.is.Hostname != ""
			out[s.ID] = NodeName{s.Node, !itsWord || s.node != nil || v.taken.Claim(*s.Host, s.Node).Known}
		}
	}
	return out
}
