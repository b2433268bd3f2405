package decide

import (
	"maps"
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// orderedInstructions returns what an operator must do, in the safe order: control-plane hosts with a dead etcd member,
// other unhealthy control-plane hosts, members that kubeone may not remove yet, then workers. Each replacement is
// counted as if the one before it were finished, but without kubeone's own steps.
func (v *view) orderedInstructions() []problem.Instruction {
	var out []problem.Instruction
	etcd := v.memberLists()
	for _, dead := range []bool{true, false} {
		for i := range v.controlPlane() {
			s := &v.hosts[i]
			if v.needsInstruction(s) && dead == (v.memberVote(s) == observed.No) {
				out = append(out, v.instructControlPlane(s, etcd))
				etcd = etcd.afterReplacing(s.Etcd)
			}
		}
	}
	out = append(out, v.instructEtcd()...)
	for i := range v.workers() {
		if s := &v.workers()[i]; v.needsInstruction(s) && !s.waitsForTheAPI() {
			out = append(out, v.instructWorker(s))
		}
	}
	return out
}

// needsInstruction reports whether the host is an unhealthy member, or nothing is known of it, and apply does not
// repair it.
func (v *view) needsInstruction(s *hostState) bool {
	if s.reported && s.node == nil {
		return false // it is unknown, and was not to be probed
	}
	return s.isSilent() ||
		s.hasJoined() && s.Condition != condition.Healthy && !s.canStart() && !s.midUpgrade && !v.canRegenerate(s) &&
			!v.canRestore(s)
}

// waitsForTheAPI reports whether the only fault of the host is that no API reports the state of its Node.
func (s *hostState) waitsForTheAPI() bool {
	return s.Condition == condition.Unready && !slices.ContainsFunc(s.Reasons, func(p problem.Problem) bool {
		return p.Code != problem.NodeUnknown
	})
}

// memberVote returns the health of the host's etcd member.
func (v *view) memberVote(s *hostState) observed.Tri {
	for _, m := range v.in.Is.Etcd.Members {
		if s.Etcd != "" && m.ID == s.Etcd {
			return m.Healthy
		}
	}
	return observed.Unknown
}

// memberLists holds the etcd members now, and after the steps planned so far. Instructions must be safe before and
// after those steps.
type memberLists struct{ now, then []observed.Member }

func (v *view) memberLists() memberLists {
	then := v.in.Is.Etcd.Members
	if v.in.Now == nil {
		return memberLists{now: then, then: then}
	}
	return memberLists{now: v.in.Now, then: then}
}

// safeToRemove reports whether the member may leave, now and then, with the arithmetic of the list that forbids it, or
// of now.
func (l memberLists) safeToRemove(id string) quorum.Verdict {
	now := quorum.SafeToRemove(l.now, id)
	if then := quorum.SafeToRemove(l.then, id); now.Safe && !then.Safe {
		return then
	}
	return now
}

// afterReplacing returns the lists after a new healthy member has replaced the one with that ID.
func (l memberLists) afterReplacing(id string) memberLists {
	healed := func(members []observed.Member) []observed.Member {
		members = slices.Clone(members)
		for i := range members {
			if members[i].ID == id {
				members[i].Healthy, members[i].Alarms = observed.Yes, nil
			}
		}
		return members
	}
	return memberLists{now: healed(l.now), then: healed(l.then)}
}

func (v *view) instructControlPlane(s *hostState, etcd memberLists) problem.Instruction {
	return problem.Instruction{
		Host:     s.ID,
		Problems: s.Reasons,
		Steps:    append(v.inspectSteps(s), v.replaceControlPlane(s, etcd)...),
	}
}

// instructionStep returns one step about a host, with additional parameters.
func (s *hostState) instructionStep(code problem.Code, with problem.Parameters) problem.Step {
	out := problem.Parameters{"name": s.displayName(), "address": s.PublicAddress}
	maps.Copy(out, with)
	maps.DeleteFunc(out, func(name string, _ any) bool { return !problem.Takes(code, name) })
	return problem.Step{Code: code, Parameters: out}
}

// inspectSteps returns steps to find out what is wrong with a host.
func (v *view) inspectSteps(s *hostState) []problem.Step {
	switch {
	case s.Condition == condition.Unreachable:
		return []problem.Step{s.instructionStep(problem.InspectConnection, nil)}
	case s.is.Unwritable != "" && s.isSilent():
		return []problem.Step{s.instructionStep(problem.FreeSpace, nil)}
	case s.Condition == condition.Unclear:
		return []problem.Step{s.instructionStep(problem.InspectFileSystem, nil)}
	case s.Condition == condition.Restartable:
		return []problem.Step{s.instructionStep(problem.StartUnitsOutsideLimit, problem.Parameters{"units": s.Units})}
	case s.Condition == condition.Regenerable && !s.inLimit:
		return []problem.Step{s.instructionStep(problem.RegenerateOutsideLimit, problem.Parameters{"parts": s.Parts})}
	case s.Condition == condition.Regenerable:
		return []problem.Step{s.instructionStep(problem.RegenerateAfterOthers, problem.Parameters{"parts": s.Parts})}
	case s.Condition == condition.Rejoinable && !s.inLimit:
		return []problem.Step{s.instructionStep(problem.RejoinOutsideLimit, nil)}
	case s.Condition == condition.Rejoinable:
		return []problem.Step{s.instructionStep(problem.RejoinAfterOthers, nil)}
	case s.Condition == condition.Unready:
		return []problem.Step{
			{Code: problem.DescribeNode, Parameters: problem.Parameters{"node": s.nodeArg()}},
			s.instructionStep(problem.ReadHostLogs, nil),
		}
	case s.is.KubeletConf == observed.No:
		return []problem.Step{s.instructionStep(problem.FindWhoEmptied, nil)}
	}
	return []problem.Step{s.instructionStep(problem.ReadComponentLogs, nil)}
}

// replaceControlPlane returns the last steps for a control-plane host: how to replace it, or why that is not safe now.
func (v *view) replaceControlPlane(s *hostState, etcd memberLists) []problem.Step {
	switch {
	case s.isRepairable():
		return []problem.Step{s.instructionStep(problem.KeepHost, nil)}
	case !v.etcd.listed:
		return []problem.Step{s.instructionStep(problem.KeepHostMembersUnknown, nil)}
	case s.Etcd == "":
		return v.replaceSteps(s, s.instructionStep(problem.ReplaceWithoutMember, nil))
	}
	verdict := etcd.safeToRemove(s.Etcd)
	if !verdict.Safe {
		return []problem.Step{s.instructionStep(problem.KeepHostQuorum, tallyParameters(verdict.Left, nil))}
	}
	return v.replaceSteps(s, s.instructionStep(problem.ReplaceSafely, tallyParameters(verdict.Left, nil)))
}

// replaceSteps returns how to replace a host that cannot be saved; the first step says why that is allowed.
func (v *view) replaceSteps(s *hostState, first problem.Step) []problem.Step {
	if s.Condition != condition.Unreachable && s.is.Unwritable == "" && v.in.Is.API.Reached == observed.Yes {
		return []problem.Step{first, s.instructionStep(problem.ReplaceInPlace, nil)}
	}
	return append([]problem.Step{first}, Successor(*s.Host)...)
}

// Successor returns how to replace a lost machine: with Terraform or manually, at the same address or another.
func Successor(h desired.Host) []problem.Step {
	list := "staticWorkers.hosts"
	if h.Role == desired.ControlPlane {
		list = "controlPlane.hosts"
	}
	out := []problem.Step{
		{Code: problem.MakeMachine, Parameters: problem.Parameters{"address": h.PublicAddress}},
		{Code: problem.UpdateManifest, Parameters: problem.Parameters{"list": list, "address": h.PublicAddress}},
	}
	if h.Role != desired.ControlPlane {
		return append(out, problem.Step{Code: problem.JoinSuccessor})
	}
	return append(out, problem.Step{Code: problem.JoinControlPlaneSuccessor}, problem.Step{Code: problem.AwaitHealthy})
}

// instructEtcd returns instructions that concern etcd and no host in the manifest.
func (v *view) instructEtcd() []problem.Instruction {
	if !v.etcd.listed {
		why := v.in.Is.Etcd.Problem
		if why == "" {
			why = "no member was asked"
		}
		return []problem.Instruction{{
			Problems: []problem.Problem{
				{Code: problem.EtcdMembersUnknown, Parameters: problem.Parameters{"error": why}},
			},
			Steps: []problem.Step{{Code: problem.ReadEtcdLogs}, {Code: problem.KeepControlPlane}},
		}}
	}
	var out []problem.Instruction
	for _, s := range v.etcd.orphans {
		if !s.isLiving() {
			out = append(out, problem.Instruction{
				Host:     s.host,
				Problems: []problem.Problem{s.asProblem()},
				Steps:    v.memberInstruction(s),
			})
		}
	}
	return out
}

// memberInstruction returns how to settle a member without a working host that apply may not remove.
func (v *view) memberInstruction(s orphan) []problem.Step {
	member := problem.Parameters{"member": s.displayName()}
	machine := problem.Parameters{"member": s.displayName(), "peers": s.PeerURLs}
	if s.Healthy == observed.Yes && !s.Learner {
		return []problem.Step{{Code: problem.FindMemberMachine, Parameters: machine}, {Code: problem.SilenceMember}}
	}
	verdict := v.memberLists().safeToRemove(s.ID)
	switch {
	case !verdict.Safe:
		return []problem.Step{{Code: problem.RemoveMemberAfterOthers,
			Parameters: tallyParameters(verdict.Left, member)}}
	case !v.mayRemove(s):
		return []problem.Step{{Code: problem.RemoveMemberOutsideLimit,
			Parameters: tallyParameters(verdict.Left, member)}}
	}
	return []problem.Step{{Code: problem.InspectMemberMachine, Parameters: machine}, {Code: problem.RemoveDeadMember}}
}

func (v *view) instructWorker(s *hostState) problem.Instruction {
	if s.isDoubtful() {
		var steps []problem.Step
		for _, p := range s.Reasons {
			steps = append(steps, s.instructionStep(problem.SettleFirst, problem.Parameters{"advice": p.Remedy()}))
		}
		return problem.Instruction{Host: s.ID, Problems: s.Reasons, Steps: steps}
	}
	steps := v.inspectSteps(s)
	if !s.isRepairable() {
		steps = append(steps, v.replaceSteps(s, s.instructionStep(problem.ReplaceWorker, nil))...)
	}
	return problem.Instruction{Host: s.ID, Problems: s.Reasons, Steps: steps}
}

// isDoubtful reports whether the worker's state or identity is unclear: replacing it would not help.
func (s *hostState) isDoubtful() bool {
	return s.leftAlone || keyRefused(s.Reasons) ||
		problem.Has(s.Reasons, problem.ControlPlaneClaimed)
}

// nodeArg returns the name of the host's Node for a command line, or a placeholder if it is not known.
func (s *hostState) nodeArg() string {
	if s.Node == "" {
		return "NODE"
	}
	return s.Node
}
