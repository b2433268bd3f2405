package view

import (
	"fmt"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
)

// Summary counts what a plan holds.
type Summary struct {
	Joins        int `json:"joins"` // hosts that become members of the cluster
	Steps        int `json:"steps"`
	Create       int `json:"create"`
	Change       int `json:"change"`
	Replace      int `json:"replace"`
	Remove       int `json:"remove"`
	Instructions int `json:"instructions"` // things that the operator must do
}

// Summarize counts a plan's steps.
func Summarize(p plan.Plan) Summary {
	s := Summary{Steps: len(p.Steps), Instructions: len(p.Operator)}
	for _, step := range p.Steps {
		if step.Intent.Kind.Joins() {
			s.Joins++
		}
		switch step.Action {
		case plan.Create:
			s.Create++
		case plan.Change:
			s.Change++
		case plan.Replace:
			s.Replace++
		case plan.Remove:
			s.Remove++
		case plan.MustAct:
			s.Instructions++
		}
	}
	return s
}

// String is the summary in one line: "Plan: 4 hosts to join, 19 steps: 17 to create, 2 to change, 0 to remove."
func (s Summary) String() string {
	var parts []string
	if s.Joins > 0 {
		parts = append(parts, phrase.Count(s.Joins, "host")+" to join")
	}
	steps := phrase.Count(s.Steps, "step")
	if s.Steps > 0 {
		steps += fmt.Sprintf(": %d to create, %d to change, ", s.Create, s.Change)
		if s.Replace > 0 {
			steps += fmt.Sprintf("%d to replace, ", s.Replace)
		}
		steps += fmt.Sprintf("%d to remove", s.Remove)
	}
	text := "Plan: " + strings.Join(append(parts, steps), ", ") + "."
	if s.Instructions > 0 {
		text += " " + sentence(phrase.Count(s.Instructions, "thing")+" for you to do")
	}
	return text
}

// Exit is the exit status of the command plan: 0 when there is nothing to do, 2 when there are steps or something
// for the operator, else that of the first problem that stands in the way. Decisions are those that Build returned
// with the plan.
func Exit(p plan.Plan, decisions ...decide.Decision) int {
	if !p.Empty() {
		return 2
	}
	for _, p := range problems(decisions) {
		return ExitOf(p.Class())
	}
	for _, r := range p.Routes {
		if r == string(fsm.Error) {
			return 1
		}
	}
	if len(p.Exceptions()) > 0 {
		return ExitExcept
	}
	return 0
}

// ExitExcept is the exit status where there is nothing to do, but the cluster is other than the manifest says.
const ExitExcept = 4

// Matched says that there is nothing left to do, and what the cluster may be otherwise in than the manifest says.
func Matched(p plan.Plan) string {
	except := p.Exceptions()
	if len(except) == 0 {
		return "The cluster matches the manifest."
	}
	return "The cluster matches the manifest, except for: " + strings.Join(except, ", ") + "."
}

// problems are those of the last decision: the ones before it led to steps.
func problems(decisions []decide.Decision) []problem.Problem {
	if len(decisions) == 0 {
		return nil
	}
	return decisions[len(decisions)-1].Problems
}

// ExitOf is the exit status of a class of problems; 1 for one without its own.
func ExitOf(c problem.Class) int {
	switch c {
	case problem.ClassRuntime:
		return 10
	case problem.ClassEtcd:
		return 11
	case problem.ClassKube:
		return 12
	case problem.ClassSSH:
		return 13
	case problem.ClassConnection:
		return 14
	case problem.ClassConfig:
		return 15
	}
	return 1
}
