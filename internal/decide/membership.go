package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
)

// membership is what is known of etcd.
type membership struct {
	listed bool // the member list is known; otherwise the tally assumes the worst of the manifest's hosts
	tally  quorum.Tally
	// startable counts the dead voters that would live if stopped units were started and missing parts regenerated.
	// Members that run and only lack a leader are among them.
	startable int
	orphans   []orphan // members without a working host in the manifest
}

// orphan is a member whose host was replaced or is not in the manifest.
type orphan struct {
	observed.Member
	host string // the host in its place, without its data; empty if the manifest has none
}

// countVoters counts voters by the etcd member list if it is known. Otherwise the voters are the control-plane hosts
// that joined, that may have joined because nothing is known of them, or whose join had reached etcd.
func (v *view) countVoters() membership {
	if v.hasMemberList() != observed.Yes {
		return v.supposedMembership()
	}
	r := membership{listed: true, tally: quorum.Count(v.in.Is.Etcd.Members)}
	for _, m := range v.in.Is.Etcd.Members {
		if !m.Learner && isLeaderless(m) {
			r.startable++
		}
		s := v.hostOf(m)
		switch {
		case s == nil:
			r.orphans = append(r.orphans, orphan{Member: m})
		case s.Condition == condition.Empty,
			s.Condition == condition.Partial && s.is.EtcdData == observed.No && (!m.Learner || m.Name != ""):
			// Partial: a join that had begun with its data cannot begin again without it. A learner has a name once it
			// has begun.
			r.orphans = append(r.orphans, orphan{m, s.ID})
		case !m.Learner && m.Healthy != observed.Yes && !isLeaderless(m) && s.memberReturns():
			r.startable++
		}
	}
	return r
}

func (v *view) supposedMembership() membership {
	var r membership
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.Condition.Joined() && !s.Condition.Silent() &&
			(s.Condition != condition.Partial || s.is.EtcdData != observed.Yes) {
			continue
		}
		if condition.StaleEpoch(&s.is, v.epoch) {
			continue
		}
		r.tally.Voters++
		switch {
		case s.is.EtcdHealth == observed.Yes, s.reported && s.Condition == condition.Healthy:
			r.tally.Alive++
		case s.memberReturns():
			r.startable++
		}
	}
	return r
}

// isLeaderless reports whether the member answered, and is not healthy only because no quorum elects a leader.
func isLeaderless(m observed.Member) bool {
	return m.Healthy != observed.Yes && m.Version != "" && len(m.Alarms) == 0
}

// isRepairable reports whether starting units or regenerating parts repairs the host.
func (s *hostState) isRepairable() bool {
	return s.Condition == condition.Restartable || s.Condition == condition.Regenerable
}

// memberReturns reports whether the host's member returns with the host: not if its data is lost.
func (s *hostState) memberReturns() bool { return s.isRepairable() && s.is.EtcdData != observed.No }

// hostOf returns the member's control-plane host; nil if the manifest has none.
func (v *view) hostOf(m observed.Member) *hostState {
	for i := range v.controlPlane() {
		if v.hosts[i].Etcd == m.ID {
			return &v.hosts[i]
		}
	}
	return nil
}

// isLiving reports whether the orphan is a healthy voter on a host outside the manifest. Only the operator may settle
// that, and it does no harm meanwhile.
func (s orphan) isLiving() bool {
	return s.host == "" && s.Healthy == observed.Yes && !s.Learner && len(s.Alarms) == 0
}

// membersToRemove returns the dead members to remove now, each safe after those before it. A member is dead if it is
// known not to answer, or is a learner that no join will finish, and its host was replaced or removed from the
// manifest.
func (v *view) membersToRemove() []Removal {
	var out []Removal
	left := v.in.Is.Etcd.Members
	for _, s := range v.etcd.orphans {
		if s.Healthy != observed.No && !s.Learner || !v.mayRemove(s) {
			continue
		}
		verdict := quorum.SafeToRemove(left, s.ID)
		if !verdict.Safe {
			continue
		}
		_, left = quorum.Without(left, s.ID)
		out = append(out, Removal{
			Member: s.ID, Name: s.Name, Learner: s.Learner, Host: s.host, Why: s.describeState() + "; " + verdict.Why,
		})
	}
	return out
}

// mayRemove reports whether the limit allows removing the member. A member without a host belongs to the whole cluster
// and waits for a run without a limit.
func (v *view) mayRemove(s orphan) bool {
	return v.in.Limit == nil || s.host != "" && v.in.Limit[s.host]
}

func (s orphan) asProblem() problem.Problem {
	state := "not healthy"
	switch {
	case s.Learner:
		state = "an abandoned learner"
	case s.Healthy == observed.No:
		state = "down"
	case s.Healthy == observed.Yes:
		state = "healthy"
	}
	code := problem.ReplacedMember
	if s.host == "" {
		code = problem.OrphanMember
	}
	return problem.Problem{
		Code:       code,
		Host:       s.host,
		Parameters: problem.Parameters{"member": s.displayName(), "state": state},
	}
}

// describeState returns what is wrong with the member, for a sentence.
func (s orphan) describeState() string { return s.asProblem().Text() }

// displayName names the member in a sentence.
func (s orphan) displayName() string {
	if s.Name == "" {
		return s.ID + " (nameless)"
	}
	return s.Name + " (" + s.ID + ")"
}

// membershipSound reports whether every voter is healthy, no join is under way and nothing is to be removed. Only then
// may a member be added.
func (v *view) membershipSound() bool {
	return v.etcd.listed && v.etcd.tally.Alive == v.etcd.tally.Voters && v.etcd.tally.Learners == 0 &&
		!v.orphansMatter()
}

// orphansMatter reports whether an orphan is anything but a living member outside the manifest.
func (v *view) orphansMatter() bool {
	for _, s := range v.etcd.orphans {
		if !s.isLiving() {
			return true
		}
	}
	return false
}

// inEtcd reports whether the host's unfinished join has reached etcd. It must finish before any other host joins.
func (s *hostState) inEtcd() bool {
	return s.Condition == condition.Partial && s.Role == desired.ControlPlane &&
		(s.Etcd != "" || s.is.EtcdData == observed.Yes)
}

// partsToRegenerate returns the parts to regenerate, by host ID. A worker needs the API for new credentials, and a
// living etcd member is restarted only if the quorum allows it.
func (v *view) partsToRegenerate() map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		if s := &v.hosts[i]; v.canRegenerate(s) {
			if out == nil {
				out = make(map[string][]string)
			}
			out[s.ID] = s.Parts
		}
	}
	return out
}

func (v *view) canRegenerate(s *hostState) bool {
	switch {
	case !s.inLimit || s.midUpgrade || s.Condition != condition.Regenerable:
		return false
	case s.Role == desired.Worker:
		return v.in.Is.API.Reached == observed.Yes && v.pkiSource() != ""
	case slices.Contains(s.Parts, condition.PartEncryption) && v.keysFor(s.ID) == nil:
		return false // no host has them
	case slices.Contains(s.Parts, condition.PartCertificates) && v.memberVote(s) == observed.Yes:
		return quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe
	}
	return true
}

// hostsToQuarantine returns the hosts whose lost etcd data can be quarantined, so that they can join again. The API and
// etcd must answer, another host must have the CAs, and the remaining members must keep their quorum, each counted
// after those before it.
func (v *view) hostsToQuarantine() []string {
	if v.in.Is.API.Reached != observed.Yes || !v.etcd.listed || !v.etcd.tally.Holds() || v.pkiSource() == "" {
		return nil
	}
	var out []string
	left := v.in.Is.Etcd.Members
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.inLimit || s.Condition != condition.Rejoinable {
			continue
		}
		if s.Etcd != "" {
			if !quorum.SafeToRemove(left, s.Etcd).Safe {
				continue
			}
			_, left = quorum.Without(left, s.Etcd)
		}
		out = append(out, s.ID)
	}
	return out
}

// staleNodes lists the control-plane Nodes that are not Ready, have no etcd member, and have no host in the manifest.
// Workers' Nodes are left alone: they may belong to a controller, for instance.
func (v *view) staleNodes() []string {
	if v.in.Limit != nil || v.in.Is.API.Reached != observed.Yes || !v.etcd.listed {
		return nil
	}
	var out []string
	for i := range v.in.Is.API.Nodes {
		n := &v.in.Is.API.Nodes[i]
		if n.ControlPlane && n.Ready != observed.Yes && !v.isKnownNode(n) {
			out = append(out, n.Name)
		}
	}
	return out
}

// isKnownNode reports whether the Node belongs to a host in the manifest or to an etcd member. A host whose name is
// unknown might have any Node. A refused name keeps no Node.
func (v *view) isKnownNode(n *observed.Node) bool {
	for i := range v.hosts {
		s := &v.hosts[i]
		if s.Node == n.Name || s.Node == "" && s.refused == nil || s.node != nil && s.node.Name == n.Name {
			return true
		}
	}
	return slices.ContainsFunc(v.in.Is.Etcd.Members, func(m observed.Member) bool {
		return m.Name == n.Name || m.Name == ""
	})
}
