package view

import (
	"fmt"
	"strings"

	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
)

// Summary contains the numbers of steps and tasks in a plan.
type Summary struct {
	Joins        int `json:"joins"` // hosts that join the cluster
	Steps        int `json:"steps"`
	Create       int `json:"create"`
	Change       int `json:"change"`
	Replace      int `json:"replace"`
	Remove       int `json:"remove"`
	Instructions int `json:"instructions"` // tasks for the operator
}

// Summarize returns the summary of a plan.
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

// String returns the summary on one line: "Plan: 4 hosts to join, 19 steps: 17 to create, 2 to change, 0 to remove."
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
		text += " " + asSentence(phrase.Count(s.Instructions, "task")+" for you")
	}
	return text
}

// Matched returns the message for a plan with nothing to do. It lists the known differences from the manifest.
func Matched(p plan.Plan) string {
	except := p.Exceptions()
	if len(except) == 0 {
		return "The cluster matches the manifest."
	}
	return "The cluster matches the manifest, except for: " + strings.Join(except, ", ") + "."
}
