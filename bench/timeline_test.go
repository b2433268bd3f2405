package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kubeone/internal/apply"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(second float64) time.Time { return start.Add(seconds(second)) }

// ran is a finished run on two hosts: cp-2's join is what everything waits for in the end.
func ran(t *testing.T) timeline {
	t.Helper()
	var events []apply.Event
	event := func(second float64, kind apply.EventType, step string) {
		events = append(events, apply.Event{Format: apply.EventFormat, Time: at(second), Type: kind, Step: step})
	}
	event(2, apply.StepStarted, "prepare/cp-1")
	event(2, apply.StepStarted, "prepare/cp-2")
	event(5, apply.StepDone, "prepare/cp-1")
	event(5, apply.StepStarted, "images/cp-1")
	event(7, apply.StepDone, "prepare/cp-2")
	event(9, apply.StepDone, "images/cp-1")
	event(9.1, apply.StepStarted, "init/cp-1")
	event(19, apply.StepDone, "init/cp-1")
	event(19, apply.StepStarted, "join-etcd/cp-2")
	event(19, apply.StepStarted, "addon/flannel")
	event(20, apply.StepDone, "addon/flannel")
	event(26, apply.StepDone, "join-etcd/cp-2")
	event(26, apply.StepStarted, "record")
	event(26.5, apply.StepDone, "record")
	got, err := newTimeline(events)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCriticalPathIsTheChainOfStepsThatLetEachOtherBegin(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range ran(t).critical() {
		got = append(got, s.step)
	}
	want := []string{"prepare/cp-1", "images/cp-1", "init/cp-1", "join-etcd/cp-2", "record"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("critical path (-want +got):\n%s", diff)
	}
}

func TestStagesAddUpToTheWholeRun(t *testing.T) {
	t.Parallel()
	stages := ran(t).stages(start, at(28))
	want := []stage{
		{stageBefore, 2}, {"prepare", 3}, {"images", 4.1}, {"init", 9.9}, {"join-etcd", 7}, {"record", 0.5},
		{stageAfter, 1.5},
	}
	about := cmpopts.EquateApprox(0, 1e-6)
	if diff := cmp.Diff(want, stages, about); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(2+3+0.5+1.5, outside(stages), about); diff != "" {
		t.Errorf("outside kubeadm and images (-want +got):\n%s", diff)
	}
}

func TestWorkAddsUpOverHosts(t *testing.T) {
	t.Parallel()
	want := []stage{{"prepare", 8}, {"images", 4}, {"init", 9.9}, {"addon", 1}, {"join-etcd", 7}, {"record", 0.5}}
	if diff := cmp.Diff(want, ran(t).work(), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
}

func TestAStreamWithoutStepsIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := newTimeline([]apply.Event{{Type: apply.RunStarted}}); err == nil {
		t.Error("no error")
	}
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream string
		events int
		fails  string
	}{
		"two events":        {`{"format":1,"type":"run-started"}` + "\n" + `{"format":1,"type":"run-finished"}`, 2, ""},
		"nothing":           {"", 0, ""},
		"a later format":    {`{"format":2}`, 0, "format 2"},
		"not JSON":          {"hello", 0, "event 1"},
		"cut in the middle": {`{"format":1}{"form`, 0, "event 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, err := readEvents(strings.NewReader(test.stream))
			if len(events) != test.events {
				t.Errorf("%d events, want %d", len(events), test.events)
			}
			switch {
			case test.fails == "" && err != nil:
				t.Error(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("error %v, want one with %q", err, test.fails)
			}
		})
	}
}
