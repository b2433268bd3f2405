package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
)

// boundaries are the known step boundaries of one operation of kubeone, stored between calls. A boundary is a step's
// beginning or end: "step-started drain/cp-1".
type boundaries struct {
	path string
	// Known are all boundaries that plans and runs have shown, in their order.
	Known []string `json:"known"`
	// Passed are those where a run was killed and a later run finished.
	Passed []string `json:"passed"`
	// tried are those where the current run was killed.
	tried []string
}

// readBoundaries reads the file. A missing file has no boundaries.
func readBoundaries(path string) (*boundaries, error) {
	b := &boundaries{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	return b, json.Unmarshal(text, b)
}

func (b *boundaries) saveFile() error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(b.path+".new", b.path)
}

// boundaryOf returns the name of an event's boundary, or "" for other events.
func boundaryOf(e apply.Event) string {
	if e.Type != apply.StepStarted && e.Type != apply.StepDone {
		return ""
	}
	return string(e.Type) + " " + e.Step
}

func (b *boundaries) learnBoundary(name string) {
	if !slices.Contains(b.Known, name) {
		b.Known = append(b.Known, name)
	}
}

// learnPlan adds the boundaries of a plan's steps.
func (b *boundaries) learnPlan(p plan.Plan) {
	for _, step := range p.Steps {
		b.learnBoundary(string(apply.StepStarted) + " " + step.ID)
		b.learnBoundary(string(apply.StepDone) + " " + step.ID)
	}
}

// wantsKill reports whether to kill a run at an event, which is at the first untried boundary. It learns from every
// event.
func (b *boundaries) wantsKill(e apply.Event) bool {
	name := boundaryOf(e)
	if name == "" {
		return false
	}
	b.learnBoundary(name)
	return b.isOpen(name)
}

func (b *boundaries) isOpen(name string) bool {
	return !slices.Contains(b.Passed, name) && !slices.Contains(b.tried, name)
}

// listLeft returns the known boundaries where no run was killed yet.
func (b *boundaries) listLeft() []string {
	return slices.DeleteFunc(slices.Clone(b.Known), func(name string) bool { return !b.isOpen(name) })
}

// passTried records that an interrupted run has finished.
func (b *boundaries) passTried() error {
	b.Passed, b.tried = append(b.Passed, b.tried...), nil
	return b.saveFile()
}
