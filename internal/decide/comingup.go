package decide

import (
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
)

// comingUp names the members that may become healthy without anybody's help, inside the limit or not. Where it is not
// known which host is which, no waiting tells.
func (v *view) comingUp() []string {
	if len(v.in.Contradictions) > 0 {
		return nil
	}
	if event, _ := v.askQuorum(); event == fsm.OnLost && !v.mayElect() {
		return nil
	}
	return having(v.hosts, func(s *hostState) bool {
		return s.Condition == condition.Unready || s.Condition == condition.Broken || v.votesAlready(s) ||
			s.Condition == condition.Restartable && starts(s.is.Containerd) && starts(s.is.Kubelet)
	})
}

// starts reports whether the unit runs, or is about to: what does not answer then may only be late.
func starts(u observed.Unit) bool {
	return u.Active || !u.Known() || strings.HasPrefix(u.State, "activating")
}

// votesAlready reports whether the host's join has come as far as a member that votes, as the host says, and does not
// serve clients yet, which takes it some seconds more. A host with neither curl nor wget cannot say so.
func (v *view) votesAlready(s *hostState) bool {
	return s.Condition == condition.Partial && s.is.EtcdHealth == observed.Yes &&
		slices.ContainsFunc(v.in.Is.Etcd.Members, func(m observed.Member) bool {
			return m.ID == s.Etcd && !m.Learner && m.Healthy != observed.Yes
		})
}

// mayElect reports whether the members that answer, or may hold data on a host that does, could be a quorum.
func (v *view) mayElect() bool {
	voters := len(having(v.controlPlane(), func(s *hostState) bool {
		return !s.Condition.Silent() && s.is.EtcdData != observed.No
	}))
	for _, s := range v.etcd.orphans {
		if !s.Learner && s.Healthy == observed.Yes {
			voters++
		}
	}
	return voters >= quorum.Of(v.etcd.tally.Voters)
}
