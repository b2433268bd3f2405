package view

import (
	"bytes"
	"encoding/json"
	"fmt"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/text/diff"
)

// PlanDocument is the plan as JSON: the plan itself, and what a program would otherwise have to work out.
type PlanDocument struct {
	plan.Plan
	Digest   string            `json:"digest,omitempty"` // of all that the plan does; equal digests do the same
	Changes  bool              `json:"changes"`          // there is something to do, for apply or for the operator
	Summary  Summary           `json:"summary"`
	Trace    []fsm.Visit       `json:"trace,omitempty"`    // how the first route was found
	Problems []problem.Problem `json:"problems,omitempty"` // what stands in the way of a plan, or of more of it
	Exit     int               `json:"exit"`               // the exit status of the command plan
	Diffs    []diff.Set        `json:"diffs,omitempty"`    // which lines differ, if that was asked for
}

// PlanJSON is a plan as docs/json.md describes it, with which lines differ, if that is known. Decisions are those that
// Build returned with it.
func PlanJSON(p plan.Plan, diffs []diff.Set, decisions ...decide.Decision) ([]byte, error) {
	doc := PlanDocument{
		Plan: p, Digest: p.Digest(), Changes: !p.Empty(), Summary: Summarize(p),
		Problems: problems(decisions), Exit: Exit(p, decisions...), Diffs: diffs,
	}
	if len(decisions) > 0 {
		doc.Trace = decisions[0].Trace
	}
	doc.Routes, doc.Steps = notNil(doc.Routes), notNil(doc.Steps)
	if doc.Hosts == nil {
		doc.Hosts = map[string]string{}
	}
	return encode(doc, "plan of "+p.Cluster)
}

// notNil makes a list that a program may walk without asking first.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// encode is a document as indented JSON with a final newline; <, > and & stand for themselves.
func encode(doc any, what string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("the %s as JSON: %w", what, err)
	}
	return b.Bytes(), nil
}
