package decide

import (
	"maps"
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// disasterProcedure returns what to do when etcd has no quorum and stopped units are not the reason: first what may
// restore the quorum, then the recovery.
func (v *view) disasterProcedure() []problem.Instruction {
	if at := v.otherEndpointReady(); at != "" {
		return []problem.Instruction{v.servedElsewhere(at)}
	}
	if fenced := namesOf(v.controlPlane(), (*hostState).isFenced); fenced != nil {
		return []problem.Instruction{{
			Problems: []problem.Problem{
				{Code: problem.RecoveryIncomplete, Parameters: problem.Parameters{"hosts": fenced}},
			},
			Steps: []problem.Step{{Code: problem.ResumeRecovery}},
		}}
	}
	var steps []problem.Step
	if s := v.bringBack(); s != nil {
		steps = append(steps, *s)
	}
	if data := namesOf(v.controlPlane(), (*hostState).holdsData); data != nil {
		steps = append(steps, v.recoverFromData(data)...)
	} else {
		steps = append(steps, v.recoverFromBackup()...)
	}
	return []problem.Instruction{{Problems: []problem.Problem{v.quorumLost()}, Steps: steps}}
}

// quorumLost returns the problem that etcd has no quorum.
func (v *view) quorumLost() problem.Problem {
	if v.etcd.tally.Voters == 0 {
		return problem.Problem{Code: problem.EtcdWithoutMembers}
	}
	return problem.Problem{Code: problem.EtcdQuorumLost, Parameters: tallyParameters(v.etcd.tally, nil)}
}

// tallyParameters returns the figures of a tally, merged with other parameters.
func tallyParameters(t quorum.Tally, with problem.Parameters) problem.Parameters {
	out := problem.Parameters{"healthy": t.Alive, "voters": t.Voters, "quorum": quorum.Of(t.Voters)}
	maps.Copy(out, with)
	return out
}

// bringBack names the hosts that may still hold living members, and how many of them suffice. A member that only waits
// for the others needs nothing itself.
func (v *view) bringBack() *problem.Step {
	unhealthy := func(s *hostState) bool {
		return (s.isSilent() || s.hasJoined()) && s.is.EtcdData != observed.No && s.is.EtcdHealth != observed.Yes &&
			v.memberVote(s) != observed.Yes && !s.waitsForLeader()
	}
	back := namesOf(v.controlPlane(), unhealthy)
	short := quorum.Of(v.etcd.tally.Voters) - v.etcd.tally.Alive - len(idsWhere(v.controlPlane(),
		(*hostState).waitsForLeader))
	if short <= 0 || len(back) < short {
		return nil
	}
	return &problem.Step{Code: problem.BringBackHosts, Parameters: problem.Parameters{"count": short, "hosts": back}}
}

// recoverFromData returns the steps of a recovery from data that a control-plane host still has.
func (v *view) recoverFromData(hosts []string) []problem.Step {
	steps := []problem.Step{
		{Code: problem.KeepEtcdData, Parameters: problem.Parameters{"hosts": hosts}},
		{Code: problem.RecoverFromMember,
			Parameters: problem.Parameters{"command": v.recoverCommand("surviving-member"), "hosts": hosts}},
	}
	steps = append(steps, v.confirmDestroyed()...)
	return append(steps, problem.Step{
		Code:       problem.RecoverFromCopy,
		Parameters: problem.Parameters{"command": v.recoverCommand("BACKUP --identity KEYFILE")},
	})
}

// recoverFromBackup returns the steps of a recovery from a backup.
func (v *view) recoverFromBackup() []problem.Step {
	steps := []problem.Step{
		{Code: problem.FindBackup},
		{Code: problem.RecoverFromBackup,
			Parameters: problem.Parameters{"command": v.recoverCommand("BACKUP --identity KEYFILE")}},
	}
	return append(append(steps, v.confirmDestroyed()...), problem.Step{Code: problem.ResetCluster})
}

// recoverCommand returns the command line, with every host whose destruction the operator must confirm.
func (v *view) recoverCommand(from string) string {
	line := "kubeone recover -m MANIFEST --from " + from
	for _, name := range namesOf(v.controlPlane(), (*hostState).isUnreachable) {
		line += " --confirm-destroyed " + name
	}
	return line
}

// confirmDestroyed explains the flag with that name, if the command needs it.
func (v *view) confirmDestroyed() []problem.Step {
	if len(idsWhere(v.controlPlane(), (*hostState).isUnreachable)) == 0 {
		return nil
	}
	return []problem.Step{{Code: problem.ConfirmDestroyed}}
}

func (s *hostState) isUnreachable() bool { return s.Condition == condition.Unreachable }

// Recovery assesses whether a cluster must be restored from a copy of its data.
type Recovery struct {
	// Lost says that etcd has no quorum and that starting stopped units does not restore it, or that a recovery has
	// begun and not ended.
	Lost bool
	// Listed says that etcd has listed its members. Otherwise the manifest's hosts stand for them, and there may be
	// others.
	Listed bool
	// Serving names the hosts of the current epoch whose own member or API server says that it serves, although this
	// machine sees no quorum; "" for none.
	Serving string
	// Elsewhere is the address of a ready API server, "host:port", if no answering host in the manifest serves or has
	// begun to recover: other hosts have the quorum. "" if there is none.
	Elsewhere string
	Why       string                          // the arithmetic, in words
	Unfit     []problem.Problem               // why nothing can be done, whatever is lost
	Hosts     map[string]condition.Assessment // by host ID
}

// AssessRecovery reports whether the quorum is lost, and what forbids doing anything.
func AssessRecovery(in Input) Recovery {
	v := newView(in)
	event, why := v.askQuorum()
	lost := event == fsm.OnLost
	if event == fsm.OnRecoverable && !v.etcd.listed {
		// A host with nothing left may still have been a voter: the others alone may be no quorum.
		all := quorum.Tally{Voters: v.cps, Alive: v.etcd.tally.Alive + v.etcd.startable}
		lost = !all.Holds()
	}
	// A worker's own claims do not stop a recovery: nothing of the control plane depends on them.
	unfit := slices.DeleteFunc(slices.Clone(v.unfit), func(p problem.Problem) bool {
		return slices.ContainsFunc(v.workers(), func(s hostState) bool {
			return s.refused != nil && s.ID == p.Host && s.refused.Code == p.Code
		})
	})
	return Recovery{
		Lost: lost, Listed: v.etcd.listed, Serving: v.servingHosts(), Elsewhere: v.otherEndpointReady(), Why: why,
		Unfit: unfit,
		Hosts: v.assessmentsByID(),
	}
}

// otherEndpointReady returns an endpoint with a ready API server that is not on a known host in the manifest; "" if
// there is none. What a recovery has restored serves before the recovery is complete.
func (v *view) otherEndpointReady() string {
	own := slices.ContainsFunc(v.controlPlane(), func(s hostState) bool {
		begun := s.is.Marker != nil && s.is.Marker.Restoring &&
			(s.is.APIServer != observed.No || s.is.EtcdHealth == observed.Yes)
		return begun || s.is.APIServer == observed.Yes
	})
	if own {
		return ""
	}
	return v.in.Is.API.ReadyAt
}

// servedElsewhere returns the instruction for a cluster whose serving hosts did not answer or are not in the manifest.
func (v *view) servedElsewhere(at string) problem.Instruction {
	endpoint := problem.Parameters{"endpoint": at}
	steps := []problem.Step{{Code: problem.AddServingHosts, Parameters: endpoint}}
	if s := v.bringBack(); s != nil {
		steps = append(steps, *s)
	}
	return problem.Instruction{
		Problems: []problem.Problem{{Code: problem.ServedElsewhere, Parameters: endpoint}}, Steps: steps,
	}
}

// servingHosts names the control-plane hosts of the current epoch whose etcd answers with a quorum, or whose API server
// reads from one. A recovery that has begun serves on its own host until it ends.
func (v *view) servingHosts() string {
	newest := condition.EpochBegun(&v.in.Want, &v.in.Is)
	return joinedNames(v.controlPlane(), func(s *hostState) bool {
		m := s.is.Marker
		if m != nil && (m.Restoring || m.Epoch < newest) {
			return false
		}
		return s.is.EtcdHealth == observed.Yes || v.in.Is.API.Reached == observed.Yes && v.in.Is.API.Via == s.ID
	})
}

// isFenced reports whether a recovery stopped etcd on the host, and no join has completed there since.
func (s *hostState) isFenced() bool {
	return s.is.Marker != nil && s.is.Marker.Fenced != "" && !s.is.Marker.Complete
}

// waitsForLeader reports whether the host's member is complete and running, as far as the host can say, and only lacks
// a leader.
func (s *hostState) waitsForLeader() bool {
	return s.is.Kubelet.Active && s.is.EtcdData == observed.Yes && s.is.EtcdLost == "" &&
		s.is.EtcdHealth == observed.No &&
		slices.Contains(s.is.Manifests, "etcd")
}

func (s *hostState) holdsData() bool { return s.is.EtcdData == observed.Yes }

// recoveringHosts names the hosts of a recovery that has not restored a control plane yet; empty if there is none.
// After that, its fenced hosts are like hosts that have not joined.
func (v *view) recoveringHosts() string {
	if v.hasBegun() {
		return ""
	}
	return joinedNames(v.controlPlane(), (*hostState).isFenced)
}
