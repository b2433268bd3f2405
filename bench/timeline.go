package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/step"
)

// span is a step as it ran.
type span struct {
	step       string
	start, end time.Time
}

// kind is the step's kind: "images" of "images/cp-1".
func (s span) kind() string {
	kind, _, _ := strings.Cut(s.step, "/")
	return kind
}

// timeline is a finished run's steps, in the order in which they ended.
type timeline []span

// newTimeline reads the steps from the events of a run that succeeded.
func newTimeline(events []apply.Event) (timeline, error) {
	began := map[string]time.Time{}
	var t timeline
	for _, e := range events {
		switch e.Type {
		case apply.StepStarted:
			began[e.Step] = e.Time
		case apply.StepDone:
			t = append(t, span{e.Step, began[e.Step], e.Time})
		}
	}
	if len(t) == 0 {
		return nil, errors.New("the event stream has no finished step")
	}
	return t, nil
}

// critical is the chain of steps that made the run as long as it was, the first one first: before each is the one whose
// end let it begin, which is the last that ended before.
func (t timeline) critical() []span {
	path := []span{t[len(t)-1]}
	for {
		first := path[len(path)-1]
		var before *span
		for n := range t {
			if s := &t[n]; s.step != first.step && !s.end.After(first.start) && s.start.Before(first.start) {
				before = s
			}
		}
		if before == nil {
			slices.Reverse(path)
			return path
		}
		path = append(path, *before)
	}
}

// The names of the parts of a run before its first step and after its last one.
const (
	stageBefore = "look-and-lock"
	stageAfter  = "look-again"
)

// stages are how long the critical path spent with steps of each kind, and what is before and after; together they are
// the time from began to ended.
func (t timeline) stages(began, ended time.Time) []stage {
	path := t.critical()
	var sum tally
	sum.add(stageBefore, path[0].start.Sub(began).Seconds())
	for n, s := range path {
		until := s.end
		if n+1 < len(path) {
			until = path[n+1].start
		}
		sum.add(s.kind(), until.Sub(s.start).Seconds())
	}
	sum.add(stageAfter, ended.Sub(path[len(path)-1].end).Seconds())
	return sum.stages
}

// work is how long the steps of each kind took, added up over the hosts.
func (t timeline) work() []stage {
	var sum tally
	for _, s := range t {
		sum.add(s.kind(), s.end.Sub(s.start).Seconds())
	}
	return sum.stages
}

// outside is the time of the stages that are not the work itself: what kubeone takes.
func outside(stages []stage) float64 {
	var sum float64
	for _, s := range stages {
		if !step.Kind(s.Name).Essential() {
			sum += s.Seconds
		}
	}
	return sum
}
