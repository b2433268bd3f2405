package view

import (
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
)

// Exit statuses of the program.
const (
	ExitOther       = 1 // anything without a status of its own
	ExitChanges     = 2 // of plan: there is something to do
	ExitUnhealthy   = 3 // of status
	ExitExcept      = 4 // nothing to do, but the cluster differs from the manifest
	ExitRuntime     = 10
	ExitEtcd        = 11
	ExitKube        = 12 // the Kubernetes API
	ExitSSH         = 13
	ExitConnection  = 14
	ExitConfig      = 15 // the manifest, the command line, or their request
	ExitExec        = 16 // a command on a host
	ExitInterrupted = 130
)

// Exit returns the exit status of the command plan: 0 if there is nothing to do, 2 if there are steps or instructions,
// otherwise the status of the first problem. decisions are those that Build returned with the plan.
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

// lastProblems returns the problems of the last decision; the decisions before it led to steps.
func lastProblems(decisions []decide.Decision) []problem.Problem {
	if len(decisions) == 0 {
		return nil
	}
	return decisions[len(decisions)-1].Problems
}
