package view

import (
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
)

// Exit statuses of the program.
const (
	ExitOther       = 1 // any other failure
	ExitChanges     = 2 // plan: there are steps or instructions
	ExitUnhealthy   = 3 // status: the cluster is not healthy
	ExitExcept      = 4 // nothing to do, but the cluster differs from the manifest
	ExitRuntime     = 10
	ExitEtcd        = 11
	ExitKube        = 12 // the Kubernetes API
	ExitSSH         = 13
	ExitConnection  = 14
	ExitConfig      = 15 // the manifest or the command line
	ExitExec        = 16 // a command on a host failed
	ExitInterrupted = 130
)

// Exit returns the exit status for a plan. It is ExitChanges if there are steps or instructions, and otherwise the
// status of the first problem. Without problems, it is ExitExcept if there are known differences from the manifest, or
// 0. decisions are those that Build returned with the plan.
func Exit(p plan.Plan, decisions ...decide.Decision) int {
	if !p.Empty() {
		return ExitChanges
	}
	for _, p := range lastProblems(decisions) {
		return ExitOf(p.Class())
	}
	for _, r := range p.Routes {
		if r == string(fsm.Error) {
			return ExitOther
		}
	}
	if len(p.Exceptions()) > 0 {
		return ExitExcept
	}
	return 0
}

// ExitOf returns the exit status of a class of problems, ExitOther by default.
func ExitOf(c problem.Class) int {
	switch c {
	case problem.ClassRuntime:
		return ExitRuntime
	case problem.ClassEtcd:
		return ExitEtcd
	case problem.ClassKube:
		return ExitKube
	case problem.ClassSSH:
		return ExitSSH
	case problem.ClassConnection:
		return ExitConnection
	case problem.ClassConfig:
		return ExitConfig
	}
	return ExitOther
}

// lastProblems returns the problems in the last decision. The earlier decisions resulted in steps.
func lastProblems(decisions []decide.Decision) []problem.Problem {
	if len(decisions) == 0 {
		return nil
	}
	return decisions[len(decisions)-1].Problems
}
