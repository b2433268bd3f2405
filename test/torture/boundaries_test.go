package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
)

func TestEachBoundaryIsWantedOnce(t *testing.T) {
	t.Parallel()
	b, err := readBoundaries(filepath.Join(t.TempDir(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	b.learnPlan(plan.Plan{Steps: []plan.Step{{ID: "fetch/cp-1"}, {ID: "record"}}})
	run := []apply.Event{
		{Type: apply.RunStarted}, {Type: apply.StepStarted, Step: "fetch/cp-1"},
		{Type: apply.StepOutput, Step: "fetch/cp-1"},
		{Type: apply.StepDone, Step: "fetch/cp-1"}, {Type: apply.StepStarted, Step: "surprise"},
		{Type: apply.StepDone, Step: "record"},
	}
	var killed []string
	for range run {
		for _, e := range run {
			if b.wantsKill(e) {
				b.tried = append(b.tried, boundaryOf(e))
				killed = append(killed, boundaryOf(e))
				break
			}
		}
	}
	want := []string{"step-started fetch/cp-1", "step-done fetch/cp-1", "step-started surprise", "step-done record"}
	if diff := cmp.Diff(want, killed); diff != "" {
		t.Errorf("killed at (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"step-started record"}, b.listLeft()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestPassedBoundariesAreStored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	b, err := readBoundaries(path)
	if err != nil {
		t.Fatal(err)
	}
	b.Known, b.tried = []string{"a", "b", "c"}, []string{"a"}
	if err := b.passTried(); err != nil {
		t.Fatal(err)
	}
	b.tried = []string{"b"} // this run has not finished
	again, err := readBoundaries(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "c"}, again.listLeft()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
